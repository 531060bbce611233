use proptest::prelude::*;

use super::*;

fn candidate() -> ScoringCandidate {
    ScoringCandidate {
        fit: 1.0,
        health: Health::Healthy,
        active: 0,
        cents: None,
        posterior: SuccessRate::default(),
        excluded: None,
    }
}

fn any_candidate() -> impl Strategy<Value = ScoringCandidate> {
    let health = prop_oneof![
        Just(Health::Healthy),
        Just(Health::Unknown),
        Just(Health::Degraded),
        Just(Health::Unreachable)
    ];
    let excluded = proptest::option::weighted(0.2, Just("denied".to_owned()));
    (0.01..1.0, health, 0_u64..15, 0.0..200.0, 0.0..200.0, excluded).prop_map(
        |(fit, health, active, wins, losses, excluded)| {
            let posterior = SuccessRate { wins, losses, observed: 1, ..SuccessRate::default() };
            ScoringCandidate { fit, health, active, cents: None, posterior, excluded }
        },
    )
}

#[test]
fn the_factors_of_health_are_exactly_these() {
    let factors =
        [Health::Healthy, Health::Unknown, Health::Degraded, Health::Unreachable].map(health_factor);
    assert_eq!(factors, [Some(1.0), Some(0.8), Some(0.5), None]);
}

#[test]
fn one_with_much_to_do_counts_half_and_one_with_too_much_not_at_all() {
    let busy = |active| ScoringCandidate { active, ..candidate() };
    let scored = score_candidates(&[4, 5, 9, 10].map(busy), &ScoringRules::default(), 1);
    let factors: Vec<f64> = scored.iter().map(|one| one.load_factor).collect();
    assert_eq!(factors, [1.0, 0.5, 0.5, 0.5]);
    assert!(scored[2].score().is_some());
    assert_eq!(scored[3].outcome, Err("it has 10 tasks, and 10 are the most".to_owned()));
}

#[test]
fn prices_count_only_if_configured() {
    let costing = |cents| ScoringCandidate { cents, ..candidate() };
    let candidates = [Some(1.0), Some(3.0), None].map(costing);
    let factors = |cost_weight| {
        let rules = ScoringRules { cost_weight, ..ScoringRules::default() };
        score_candidates(&candidates, &rules, 1).iter().map(|one| one.cost_factor).collect::<Vec<_>>()
    };
    assert_eq!(factors(0.0), [1.0, 1.0, 1.0]);
    assert_eq!(factors(1.0), [1.0, 0.5, 1.0]);
}

#[test]
fn one_that_is_known_to_be_good_is_chosen_almost_always() {
    let good = SuccessRate { wins: 90.0, losses: 10.0, observed: 100, ..SuccessRate::default() };
    let bad = SuccessRate { wins: 30.0, losses: 70.0, observed: 100, ..SuccessRate::default() };
    let candidates = [bad, good].map(|posterior| ScoringCandidate { posterior, ..candidate() });
    let chosen = |seed| rank(&score_candidates(&candidates, &ScoringRules::default(), seed))[0];
    assert_eq!((0..1_000).filter(|seed| chosen(*seed) == 1).count(), 1_000);
    let unknown =
        [SuccessRate::default(), good].map(|posterior| ScoringCandidate { posterior, ..candidate() });
    let tried = (0..1_000)
        .filter(|seed| rank(&score_candidates(&unknown, &ScoringRules::default(), *seed))[0] == 0)
        .count();
    assert!((50..200).contains(&tried), "one that nobody knows is tried at times: {tried}");
}

#[test]
fn a_task_that_took_too_long_is_worth_less() {
    assert_eq!(reward(10.0, None), 1.0);
    assert_eq!(reward(2.0, Some(4.0)), 1.0);
    assert_eq!(reward(8.0, Some(4.0)), 0.5);
}

proptest! {
    #[test]
    fn the_same_seed_gives_the_same_choice(candidates in prop::collection::vec(any_candidate(), 0..20), seed: u64) {
        let rules = ScoringRules::default();
        let (one, other) = (score_candidates(&candidates, &rules, seed), score_candidates(&candidates, &rules, seed));
        prop_assert_eq!(rank(&one), rank(&other));
        prop_assert_eq!(one, other);
    }

    #[test]
    fn no_agent_is_chosen_that_is_unreachable_full_or_excluded(
        candidates in prop::collection::vec(any_candidate(), 0..20), seed: u64,
    ) {
        let rules = ScoringRules::default();
        let scored = score_candidates(&candidates, &rules, seed);
        let order = rank(&scored);
        for at in &order {
            let candidate = &candidates[*at];
            prop_assert!(candidate.health != Health::Unreachable && candidate.active < rules.hard_cap && candidate.excluded.is_none());
        }
        let free = candidates.iter().filter(|candidate| {
            candidate.health != Health::Unreachable && candidate.active < rules.hard_cap && candidate.excluded.is_none()
        });
        prop_assert_eq!(order.len(), free.count(), "everybody else is ranked");
    }

    #[test]
    fn a_score_is_the_product_of_its_parts(candidates in prop::collection::vec(any_candidate(), 1..9), seed: u64) {
        for (candidate, one) in candidates.iter().zip(score_candidates(&candidates, &ScoringRules::default(), seed)) {
            if let Ok(sample) = one.outcome {
                let product = candidate.fit * one.health_factor * one.load_factor * one.cost_factor * sample.value;
                prop_assert!((product - sample.score).abs() < 1e-12 && (0.0..=1.0).contains(&sample.value));
            }
        }
    }
}
