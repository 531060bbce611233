use proptest::prelude::*;

use super::*;

fn entrant() -> Entrant {
    Entrant {
        fit: 1.0,
        health: Health::Healthy,
        active: 0,
        cents: None,
        posterior: SuccessRate::default(),
        barred: None,
    }
}

fn any_entrant() -> impl Strategy<Value = Entrant> {
    let health = prop_oneof![
        Just(Health::Healthy),
        Just(Health::Unknown),
        Just(Health::Degraded),
        Just(Health::Unreachable)
    ];
    let barred = proptest::option::weighted(0.2, Just("denied".to_owned()));
    (0.01..1.0, health, 0_u64..15, 0.0..200.0, 0.0..200.0, barred).prop_map(
        |(fit, health, active, wins, losses, barred)| {
            let posterior = SuccessRate { wins, losses, observed: 1, ..SuccessRate::default() };
            Entrant { fit, health, active, cents: None, posterior, barred }
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
    let busy = |active| Entrant { active, ..entrant() };
    let weighed = weigh(&[4, 5, 9, 10].map(busy), &Rules::default(), 1);
    let factors: Vec<f64> = weighed.iter().map(|one| one.load_factor).collect();
    assert_eq!(factors, [1.0, 0.5, 0.5, 0.5]);
    assert!(weighed[2].score().is_some());
    assert_eq!(weighed[3].outcome, Err("it has 10 tasks, and 10 are the most".to_owned()));
}

#[test]
fn prices_count_only_if_somebody_says_so() {
    let costing = |cents| Entrant { cents, ..entrant() };
    let entrants = [Some(1.0), Some(3.0), None].map(costing);
    let factors = |cost_weight| {
        let rules = Rules { cost_weight, ..Rules::default() };
        weigh(&entrants, &rules, 1).iter().map(|one| one.cost_factor).collect::<Vec<_>>()
    };
    assert_eq!(factors(0.0), [1.0, 1.0, 1.0]);
    assert_eq!(factors(1.0), [1.0, 0.5, 1.0]);
}

#[test]
fn one_that_is_known_to_be_good_is_chosen_almost_always() {
    let good = SuccessRate { wins: 90.0, losses: 10.0, observed: 100, ..SuccessRate::default() };
    let bad = SuccessRate { wins: 30.0, losses: 70.0, observed: 100, ..SuccessRate::default() };
    let entrants = [bad, good].map(|posterior| Entrant { posterior, ..entrant() });
    let chosen = |seed| ranked(&weigh(&entrants, &Rules::default(), seed))[0];
    assert_eq!((0..1_000).filter(|seed| chosen(*seed) == 1).count(), 1_000);
    let unknown = [SuccessRate::default(), good].map(|posterior| Entrant { posterior, ..entrant() });
    let tried = (0..1_000).filter(|seed| ranked(&weigh(&unknown, &Rules::default(), *seed))[0] == 0).count();
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
    fn the_same_seed_gives_the_same_choice(entrants in prop::collection::vec(any_entrant(), 0..20), seed: u64) {
        let rules = Rules::default();
        let (one, other) = (weigh(&entrants, &rules, seed), weigh(&entrants, &rules, seed));
        prop_assert_eq!(ranked(&one), ranked(&other));
        prop_assert_eq!(one, other);
    }

    #[test]
    fn nobody_is_chosen_who_is_unreachable_full_or_barred(
        entrants in prop::collection::vec(any_entrant(), 0..20), seed: u64,
    ) {
        let rules = Rules::default();
        let weighed = weigh(&entrants, &rules, seed);
        let order = ranked(&weighed);
        for at in &order {
            let entrant = &entrants[*at];
            prop_assert!(entrant.health != Health::Unreachable && entrant.active < rules.hard_cap && entrant.barred.is_none());
        }
        let free = entrants.iter().filter(|entrant| {
            entrant.health != Health::Unreachable && entrant.active < rules.hard_cap && entrant.barred.is_none()
        });
        prop_assert_eq!(order.len(), free.count(), "everybody else is ranked");
    }

    #[test]
    fn a_score_is_the_product_of_its_parts(entrants in prop::collection::vec(any_entrant(), 1..9), seed: u64) {
        for (entrant, one) in entrants.iter().zip(weigh(&entrants, &Rules::default(), seed)) {
            if let Ok(drawn) = one.outcome {
                let product = entrant.fit * one.health_factor * one.load_factor * one.cost_factor * drawn.draw;
                prop_assert!((product - drawn.score).abs() < 1e-12 && (0.0..=1.0).contains(&drawn.draw));
            }
        }
    }
}
