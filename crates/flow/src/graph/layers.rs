//! Which row of a picture each node stands in: one below the lowest of those it needs.

use super::Link;

/// The row of each node, counted from zero. Those in a circle, which no sound workflow has, stay where they are found.
pub(super) fn of(nodes: usize, links: &[Link]) -> Vec<usize> {
    let mut rows = vec![0_usize; nodes];
    let mut open = vec![0_usize; nodes];
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for link in links {
        open[link.to] += 1;
        below[link.from].push(link.to);
    }
    let mut ready: Vec<usize> = (0..nodes).filter(|node| open[*node] == 0).collect();
    while let Some(node) = ready.pop() {
        for next in below[node].iter().copied() {
            rows[next] = rows[next].max(rows[node] + 1);
            open[next] -= 1;
            if open[next] == 0 {
                ready.push(next);
            }
        }
    }
    rows
}
