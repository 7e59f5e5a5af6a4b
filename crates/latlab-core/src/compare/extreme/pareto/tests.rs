//! Fits agree with scipy's, and no neighbour is more likely.

use super::*;
use proptest::prelude::*;

/// Shape, scale and negative log-likelihood from scipy 1.17.1:
///
/// ```python
/// import numpy as np
/// from scipy.optimize import minimize
/// from scipy.stats import genpareto
/// for c in (-0.2, 0.1, 0.3):
///     x = np.round(genpareto.ppf((np.arange(200) + .5) / 200, c, scale=10_000))
///     f = genpareto.fit(x, floc=0)
///     r = minimize(lambda p: genpareto.nnlf((p[0], 0, p[1] * 1e4), x), [f[0], f[2] / 1e4],
///                  method="Nelder-Mead", options=dict(xatol=1e-9, fatol=1e-11, maxiter=10000))
///     print(c, r.x[0], r.x[1] * 1e4, r.fun)
/// ```
const GOLDEN: [(f64, f64, f64, f64); 3] = [
    (-0.2, -0.212_538_5, 10_111.014_87, 2_001.768_436_9),
    (0.1, 0.090_398_3, 10_076.888_57, 2_061.679_620_0),
    (0.3, 0.291_701_2, 10_060.440_16, 2_101.613_473_4),
];

#[test]
fn fit_agrees_with_scipy() {
    for (c, shape, scale, unlikely) in GOLDEN {
        let made = Pareto { shape: c, scale: 10_000.0 };
        let values =
            (0..200).map(|n| made.inverse_survival(1.0 - (f64::from(n) + 0.5) / 200.0).round());
        let excesses: Vec<(f64, u64)> = values.map(|x| (x, 1)).collect();
        let found = Pareto::fit(&excesses).unwrap();
        assert!((found.shape - shape).abs() < 1e-5, "{found:?}, not {shape}");
        assert!((found.scale - scale).abs() < 0.1, "{found:?}, not {scale}");
        let mine = found.neg_log_likelihood(&excesses);
        assert!((mine - unlikely).abs() < 1e-6, "{mine}, not {unlikely}");
    }
}

#[test]
fn fit_recovers_the_shape_and_scale_of_drawn_excesses() {
    for shape in [-0.3, 0.0, 0.4] {
        let made = Pareto { shape, scale: 500.0 };
        let found = Pareto::fit(&made.draw(20_000, &mut Random::new(5))).unwrap();
        assert!((found.shape - shape).abs() < 0.04, "{found:?}");
        assert!((found.scale / 500.0 - 1.0).abs() < 0.05, "{found:?}");
    }
    assert_eq!(Pareto::fit(&[(5.0, 7)]), None);
    assert_eq!(Pareto::fit(&[]), None);
}

proptest! {
    #[test]
    fn inverse_survival_is_the_inverse_of_cdf(
        shape in -0.5f64..1.0, scale in 1.0f64..1e6, rare in 1e-6f64..1.0,
    ) {
        let pareto = Pareto { shape, scale };
        prop_assert!((1.0 - pareto.cdf(pareto.inverse_survival(rare)) - rare).abs() < 1e-6);
    }

    #[test]
    fn fit_is_more_likely_than_its_neighbours(values in proptest::collection::vec(1.0f64..1e6, 5..60),
                                more in 0.9f64..1.1, shift in -0.05f64..0.05) {
        let mut excesses: Vec<(f64, u64)> = values.iter().map(|x| (*x, 2)).collect();
        excesses.sort_by(|a, b| a.0.total_cmp(&b.0));
        let found = Pareto::fit(&excesses).unwrap();
        let near = Pareto { shape: found.shape + shift, scale: found.scale * more };
        // At the smallest and the largest shape the maximum is elsewhere, and is not used.
        let inside = |shape: f64| (LEAST_SHAPE + 0.01..LARGEST_SHAPE - 0.01).contains(&shape);
        prop_assert!(
            !inside(found.shape) || !inside(near.shape)
                || near.neg_log_likelihood(&excesses) >= found.neg_log_likelihood(&excesses) - 1e-6
        );
    }
}
