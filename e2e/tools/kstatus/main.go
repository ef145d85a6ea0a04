// Reads one Kubernetes object a line as JSON and prints, a line each, the status that kstatus computes of it: InProgress, Failed,
// Current, Terminating or Unknown.
package main

import (
	"bufio"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(lines.Bytes()); err != nil {
			fail("failed to read an object: %v", err)
		}
		result, err := status.Compute(object)
		if err != nil {
			fail("failed to compute a status: %v", err)
		}
		fmt.Println(result.Status)
	}
	if err := lines.Err(); err != nil {
		fail("failed to read a line: %v", err)
	}
}

func fail(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, "error: "+format+"\n", arguments...)
	os.Exit(1)
}
