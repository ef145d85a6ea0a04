{{/* The labels of every object. The names are fixed, so there is one release in a cluster. */}}
{{- define "ankka.labels" -}}
app.kubernetes.io/part-of: ankka
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end }}

{{/* The labels by which one process's pods are selected; they can never change. Takes the process's name. */}}
{{- define "ankka.selector" -}}
app.kubernetes.io/name: {{ . }}
app.kubernetes.io/part-of: ankka
{{- end }}

{{/* An image of the platform. Takes (list <context> <name>). */}}
{{- define "ankka.image" -}}
{{- $context := index . 0 -}}
{{- $image := $context.Values.image -}}
{{- if $image.registry }}{{ $image.registry }}/{{ end }}{{ index . 1 }}:{{ $image.tag | default $context.Chart.AppVersion }}
{{- end }}

{{/* What fits Pod Security "restricted", for the pod and for its container. */}}
{{- define "ankka.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}
{{- define "ankka.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* Who makes databases for services that do not supply their own: "provisioned", or nothing while no server is named. */}}
{{- define "ankka.databaseServer" -}}
{{- if or .Values.database.host .Values.database.bundled.enabled }}provisioned{{ end }}
{{- end }}

{{/* Where that server is. */}}
{{- define "ankka.databaseHost" -}}
{{- if .Values.database.bundled.enabled }}ankka-postgres.{{ .Release.Namespace }}.svc{{ else }}{{ .Values.database.host }}{{ end }}
{{- end }}
{{- define "ankka.databasePort" -}}
{{- if .Values.database.bundled.enabled }}5432{{ else }}{{ .Values.database.port }}{{ end }}
{{- end }}

{{/* The annotations of one process's pods. Takes (list <context> <container>). */}}
{{- define "ankka.podAnnotations" -}}
{{- $own := dict "kubectl.kubernetes.io/default-container" (index . 1) -}}
{{- toYaml (merge (dict) (index . 0).Values.podAnnotations $own) }}
{{- end }}

{{/* Where the pods of one process run: apart from each other where that is possible. Takes (list <context> <name>). */}}
{{- define "ankka.placement" -}}
{{- $context := index . 0 -}}
{{- $name := index . 1 -}}
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - topologyKey: {{ . }}
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "ankka.selector" $name | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- with $context.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $context.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $context.Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $context.Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with $context.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- end }}

{{/*
A container's environment: what the chart sets, what the values add or set otherwise (never twice, which server-side apply refuses), and
where the pod is. Takes (list <chart's variables> <the values'>); those that are empty are left out.
*/}}
{{- define "ankka.env" -}}
{{- range $name, $value := merge (dict) (index . 1) (index . 0) }}
{{- if $value -}}
- name: {{ $name }}
  {{- /* Numbers in a values file are floats, and large ones would print with an exponent. */}}
  value: {{ if kindIs "float64" $value }}{{ $value | int64 | toString | quote }}{{ else }}{{ $value | toString | quote }}{{ end }}
{{ end }}
{{- end -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
{{- end }}
