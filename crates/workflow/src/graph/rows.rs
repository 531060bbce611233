//! Rows of nodes in a drawing: each node is one row below its lowest dependency. Also removes implied lines.

use super::GraphLink;

/// The row of each node, counted from zero. Those in a circle, which no sound workflow has, stay where they are found.
pub(super) fn assign_rows(nodes: usize, links: &[GraphLink]) -> Vec<usize> {
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

/// Removes links that are implied by others. Branches stay, because they carry a label.
pub(super) fn without_shortcuts(nodes: usize, links: Vec<GraphLink>) -> Vec<GraphLink> {
    let rows = assign_rows(nodes, &links);
    let mut order: Vec<usize> = (0..nodes).collect();
    order.sort_by_key(|node| rows[*node]);
    let mut above: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for link in &links {
        above[link.to].push(link.from);
    }
    // Of each node, all that come before it.
    let mut before: Vec<Vec<bool>> = vec![vec![false; nodes]; nodes];
    for node in order {
        for upper in &above[node] {
            let (theirs, mut ours) = (before[*upper].clone(), std::mem::take(&mut before[node]));
            ours.iter_mut().zip(theirs).for_each(|(ours, theirs)| *ours |= theirs);
            ours[*upper] = true;
            before[node] = ours;
        }
    }
    let is_shortcut = |link: &GraphLink| above[link.to].iter().any(|other| before[*other][link.from]);
    links.into_iter().filter(|link| link.branch.is_some() || !is_shortcut(link)).collect()
}
