//! Lines of many instances in the order of their times.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{Item, Line};

/// How long an instance that has nothing to say holds up the others when logs are followed: about how late a line may come.
const PATIENCE: Duration = Duration::from_millis(300);
/// The same for one whose log is not open yet.
const OPENING: Duration = Duration::from_secs(5);

/// What comes next.
#[derive(Debug)]
pub(crate) enum Next {
    /// A line.
    Line(Line),
    /// An instance has no log, for this reason.
    Absent(String),
    /// The container of an instance has not run before.
    NotRestarted,
    /// The log of an instance, or the rest of it, could not be read, for this reason.
    Unread(String),
    /// No log can be read.
    Failed(Box<kube::Error>),
}

/// Puts lines in order, looking no further ahead than the next line of each instance.
pub(crate) struct Merge {
    sources: Vec<Source>,
    /// New lines keep coming: nobody waits for ever for one that may never come.
    following: bool,
    timer: Option<Pin<Box<Sleep>>>,
}

struct Source {
    items: mpsc::Receiver<Item>,
    head: Option<Line>,
    opened: bool,
    /// Since when it has had nothing to say.
    quiet: Option<Instant>,
}

impl Merge {
    /// Nothing to merge yet.
    pub(crate) fn new(following: bool) -> Self {
        Self { sources: Vec::new(), following, timer: None }
    }

    /// Merges in what this instance says.
    pub(crate) fn add(&mut self, items: mpsc::Receiver<Item>) {
        self.sources.push(Source { items, head: None, opened: false, quiet: None });
    }

    /// Whether every instance has said all.
    pub(crate) fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// What comes next; none when every instance has said all. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Option<Next> {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Next>> {
        loop {
            let now = Instant::now();
            let mut index = 0;
            while let Some(source) = self.sources.get_mut(index) {
                match source.poll(cx, now) {
                    Poll::Ready(Some(told)) => return Poll::Ready(Some(told)),
                    Poll::Ready(None) => drop(self.sources.remove(index)),
                    Poll::Pending => index += 1,
                }
            }
            if self.sources.is_empty() {
                return Poll::Ready(None);
            }
            let held_up = held_up(&self.sources, self.following, now);
            let with_line = self.sources.iter_mut().filter(|source| source.head.is_some());
            let first = with_line.min_by_key(|source| source.head.as_ref().map(|line| line.at));
            match (first, held_up) {
                (None, _) | (_, HeldUp::ForEver) => return Poll::Pending,
                (Some(_), HeldUp::Until(due)) => {
                    let timer = self.timer.insert(Box::pin(sleep_until(due)));
                    if timer.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                }
                (Some(first), HeldUp::No) => return Poll::Ready(first.head.take().map(Next::Line)),
            }
        }
    }
}

/// Whether an instance that has said nothing yet may still say something earlier than all others.
enum HeldUp {
    No,
    Until(Instant),
    ForEver,
}

fn held_up(sources: &[Source], following: bool, now: Instant) -> HeldUp {
    let silent = sources.iter().filter(|source| source.head.is_none());
    let due = silent.filter_map(|source| {
        let due = source.quiet? + if source.opened { PATIENCE } else { OPENING };
        (!following || due > now).then_some(due)
    });
    match due.min() {
        None => HeldUp::No,
        Some(_) if !following => HeldUp::ForEver,
        Some(due) => HeldUp::Until(due),
    }
}

impl Source {
    /// Takes in its next line unless it has one: pending when there is nothing else to tell, none when all is said.
    fn poll(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<Option<Next>> {
        while self.head.is_none() {
            match self.items.poll_recv(cx) {
                Poll::Pending => {
                    self.quiet.get_or_insert(now);
                    return Poll::Pending;
                }
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(Item::Absent(why))) => return Poll::Ready(Some(Next::Absent(why))),
                Poll::Ready(Some(Item::NotRestarted)) => return Poll::Ready(Some(Next::NotRestarted)),
                Poll::Ready(Some(Item::Unread(why))) => return Poll::Ready(Some(Next::Unread(why))),
                Poll::Ready(Some(Item::Failed(cause))) => return Poll::Ready(Some(Next::Failed(cause))),
                Poll::Ready(Some(Item::Opened)) => {
                    self.opened = true;
                    self.quiet = None;
                }
                Poll::Ready(Some(Item::Line(line))) => {
                    self.opened = true;
                    self.quiet = None;
                    self.head = Some(line);
                }
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(instance: &str, second: i64) -> Item {
        let at = jiff::Timestamp::from_second(second).expect("a time");
        Item::Line(Line { at, instance: instance.into(), text: String::new() })
    }

    fn source(items: Vec<Item>) -> (mpsc::Sender<Item>, mpsc::Receiver<Item>) {
        let (sender, receiver) = mpsc::channel(64);
        for item in items {
            sender.try_send(item).expect("there is room");
        }
        (sender, receiver)
    }

    async fn next(merge: &mut Merge) -> Option<(String, i64)> {
        match merge.next().await? {
            Next::Line(line) => Some((line.instance.to_string(), line.at.as_second())),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn lines_come_in_the_order_of_their_times_until_all_is_said() {
        let mut merge = Merge::new(false);
        for (instance, seconds) in [("a", [1, 4, 5]), ("b", [2, 3, 9]), ("c", [0, 6, 7])] {
            merge.add(source(seconds.into_iter().map(|second| line(instance, second)).collect()).1);
        }
        let mut order = Vec::new();
        while let Some((_, second)) = next(&mut merge).await {
            order.push(second);
        }
        assert_eq!(order, [0, 1, 2, 3, 4, 5, 6, 7, 9]);
        assert!(merge.is_empty());
    }

    #[tokio::test]
    async fn a_log_that_is_not_followed_is_waited_for() {
        let mut merge = Merge::new(false);
        let (slow, items) = source(vec![Item::Opened]);
        merge.add(items);
        merge.add(source(vec![line("b", 2)]).1);
        assert!(tokio::time::timeout(PATIENCE * 2, merge.next()).await.is_err());
        slow.try_send(line("a", 1)).expect("there is room");
        drop(slow);
        assert_eq!(next(&mut merge).await, Some(("a".to_owned(), 1)));
        assert_eq!(next(&mut merge).await, Some(("b".to_owned(), 2)));
    }

    #[tokio::test]
    async fn an_instance_with_nothing_to_say_holds_up_the_others_once_and_briefly() {
        let mut merge = Merge::new(true);
        let (_silent, items) = source(vec![Item::Opened]);
        merge.add(items);
        let (busy, items) = source(vec![line("b", 1)]);
        merge.add(items);
        let begun = Instant::now();
        assert_eq!(next(&mut merge).await, Some(("b".to_owned(), 1)));
        assert!(begun.elapsed() >= PATIENCE, "it might have said something earlier");
        let begun = Instant::now();
        for second in 2..40 {
            busy.try_send(line("b", second)).expect("there is room");
            assert_eq!(next(&mut merge).await, Some(("b".to_owned(), second)));
        }
        assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    }
}
