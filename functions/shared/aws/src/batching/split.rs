//! Splits a sequence of entries into requests.

/// Splits entries, in their order, into batches of at most `count_max` entries and `bytes_max` bytes. An entry above
/// `bytes_max` is a batch by itself.
pub(super) fn split<E>(
    entries: impl IntoIterator<Item = E>,
    count_max: usize,
    bytes_max: usize,
    bytes: impl Fn(&E) -> usize,
) -> Vec<Vec<E>> {
    let mut batches: Vec<Vec<E>> = Vec::new();
    let mut bytes_in_last = 0_usize;
    for entry in entries {
        let more = bytes(&entry);
        match batches.last_mut() {
            Some(last) if last.len() < count_max && bytes_in_last.saturating_add(more) <= bytes_max => {
                last.push(entry);
                bytes_in_last += more;
            }
            Some(_) | None => {
                batches.push(vec![entry]);
                bytes_in_last = more;
            }
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(bytes: &[usize]) -> Vec<Vec<usize>> {
        split(bytes.iter().copied(), 10, 100, |&bytes| bytes)
    }

    #[test]
    fn a_batch_has_ten_entries_at_most() {
        let lengths: Vec<usize> = batches(&[1; 25]).iter().map(Vec::len).collect();
        assert_eq!(lengths, [10, 10, 5]);
        assert!(batches(&[]).is_empty());
    }

    #[test]
    fn a_batch_has_so_many_bytes_at_most_and_the_order_stays() {
        assert_eq!(batches(&[60, 40, 1, 99, 2]), [vec![60, 40], vec![1, 99], vec![2]]);
        assert_eq!(batches(&[100, 100, 150, 1]), [vec![100], vec![100], vec![150], vec![1]]);
    }
}
