//! How a link's delay varies from frame to frame: tables of quantiles and a correlation, in whole numbers only, so that they
//! are the same on every machine.

use std::sync::OnceLock;

/// One standard deviation, in the unit of `quantiles`.
pub const SD: i64 = 1 << 16;
/// How many quantiles a table has: the middles of as many equal shares.
pub const COUNT: usize = 4096;
/// A probability of 1.
const ALL: u64 = 1 << 32;
/// The names of the distributions, by their numbers. The first needs no table, and the last has one of the link's own.
pub const DISTRIBUTIONS: [&str; 5] = ["uniform", "normal", "pareto", "paretonormal", "table"];
/// The number of the distribution whose quantiles a link's settings have.
pub const OWN: u64 = 4;
/// The furthest that a quantile of such a table may be from the mean: a million standard deviations.
const FURTHEST: i64 = 1_000_000 * SD;

/// The quantiles of a distribution with the mean 0 and the standard deviation `SD`, in ascending order; None for `uniform`,
/// and for a number that is none.
///
/// 1 is the normal distribution. 2 is Pareto's with the shape 3, whose upper tail falls with the third power; the table ends
/// it at its quantile of 8191/8192. 3 is a quarter of the first and three quarters of the second.
pub fn quantiles(distribution: u64) -> Option<&'static [i64]> {
    static TABLES: OnceLock<[Vec<i64>; 3]> = OnceLock::new();
    let tables = TABLES.get_or_init(|| {
        let middle = |index: usize| (2 * index as u64 + 1) * (ALL / COUNT as u64 / 2);
        let normal = standardised((0..COUNT).map(|index| normal_quantile(middle(index))));
        let pareto = standardised((0..COUNT).map(|index| pareto_quantile(middle(index))));
        let both = standardised(
            normal
                .iter()
                .zip(&pareto)
                .map(|(one, other)| one + 3 * other),
        );
        [normal, pareto, both]
    });
    let index = usize::try_from(distribution).ok()?.checked_sub(1)?;
    tables.get(index).map(Vec::as_slice)
}

/// An error that says why no link can have these quantiles of its own, which are in the unit of `quantiles`.
pub fn check_own(table: &[i64]) -> Result<(), String> {
    if table.is_empty() || table.len() > COUNT {
        return Err(format!(
            "a table has 1 to {COUNT} quantiles, not {}",
            table.len()
        ));
    }
    if !table.is_sorted() || table[0] < -FURTHEST || table[table.len() - 1] > FURTHEST {
        return Err("the quantiles of a table ascend, within a million deviations".into());
    }
    Ok(())
}

/// The quantile of a table below which a share of all is: from 0 to the last below 2^32. Each value of the table has the same
/// share.
pub fn at_share(table: &[i64], share: u64) -> i64 {
    table[(share * table.len() as u64 / ALL) as usize]
}

/// The values, moved and scaled to the mean 0 and the standard deviation `SD`.
fn standardised(values: impl Iterator<Item = i64>) -> Vec<i64> {
    const FINER: i64 = 1 << 10;
    let values: Vec<i64> = values.map(|value| value * FINER).collect();
    let count = values.len() as i64;
    let mean = values.iter().sum::<i64>() / count;
    let squares = values.iter().map(|value| i128::from(value - mean).pow(2));
    let sd = (squares.sum::<i128>() / i128::from(count)).isqrt() as i64;
    values
        .iter()
        .map(|value| ((value - mean) * SD + sd / 2).div_euclid(sd))
        .collect()
}

/// The least value is exceeded by less than x with the probability 1 - x^-3: x, in units of 1/SD.
fn pareto_quantile(probability: u64) -> i64 {
    cube_root((1 << (32 + 3 * 16)) / u128::from(ALL - probability))
}

fn cube_root(of: u128) -> i64 {
    let mut root: u128 = 0;
    for bit in (0..42).rev() {
        let more = root | 1 << bit;
        if more.pow(3) <= of {
            root = more;
        }
    }
    root as i64
}

/// In units of 1/SD, the value below which a standard normal variable is with this probability.
fn normal_quantile(probability: u64) -> i64 {
    let half = ALL / 2;
    let away = probability.abs_diff(half);
    let areas = areas();
    let below = areas.partition_point(|area| *area <= away) - 1;
    let mut steps = below as i64 * STEP;
    if let Some(next) = areas.get(below + 1) {
        steps += (away - areas[below]) as i64 * STEP / (next - areas[below]) as i64;
    }
    if probability < half {
        -steps
    } else {
        steps
    }
}

/// The probability that a standard normal variable is below `value`, in units of 1/SD.
fn normal_probability(value: i64) -> u64 {
    let areas = areas();
    let (below, within) = ((value.abs() / STEP) as usize, value.abs() % STEP);
    let area = match (areas.get(below), areas.get(below + 1)) {
        (Some(area), Some(next)) => area + (next - area) * within as u64 / STEP as u64,
        _ => ALL / 2,
    };
    let half = ALL / 2;
    if value < 0 {
        half - area
    } else {
        (half + area).min(ALL - 1)
    }
}

/// The distance of two entries of `areas`.
const STEP: i64 = SD / 256;

/// The area below the standard normal density from 0 to each 256th of a standard deviation, up to 8 of them: the whole half
/// is ALL / 2. By Simpson's rule over densities that follow from each other: e^(-(x+h)^2/2) is e^(-x^2/2) times a ratio, which
/// becomes less by e^(-h^2) with each step h.
fn areas() -> &'static [u64] {
    static AREAS: OnceLock<Vec<u64>> = OnceLock::new();
    AREAS.get_or_init(|| {
        const ONE: u128 = 1 << 62;
        let times = |one: u128, other: u128| (one * other) >> 62;
        // e^(-h^2/2) for h = 1/512, that is x = 2^-19: 1 - x + x^2/2 - x^3/6.
        let first = ONE - (1 << 43) + (1 << 23) - 5;
        let (mut density, mut ratio) = (ONE, first);
        let mut densities = Vec::new();
        for _ in 0..=2 * 8 * 256 {
            densities.push(density);
            density = times(density, ratio);
            ratio = times(ratio, times(first, first));
        }
        let mut sums = vec![0u128];
        for pair in 0..8 * 256 {
            let [left, middle, right] = [0, 1, 2].map(|at| densities[2 * pair + at]);
            sums.push(sums[pair] + left + 4 * middle + right);
        }
        let all = sums[8 * 256];
        let half = u128::from(ALL / 2);
        // The sums have some 75 bits: with 32 more they fit.
        sums.iter().map(|sum| (sum * half / all) as u64).collect()
    })
}

/// A row of numbers of which each is correlated with the one before, and each of which is alike likely: a Gaussian
/// autoregression of the first order, turned into its probabilities.
#[derive(Default)]
pub struct Correlated {
    before: Option<i64>,
}

impl Correlated {
    /// The next number below 2^32, by an independent one and the correlation, both in 1/2^32.
    pub fn next(&mut self, independent: u64, correlation: u64) -> u64 {
        if correlation == 0 {
            return independent;
        }
        let all = u128::from(ALL);
        let own = (all * all - u128::from(correlation).pow(2)).isqrt() as i128;
        let fresh = normal_quantile(independent);
        let next = match self.before {
            None => fresh,
            Some(before) => {
                let sum = i128::from(before) * i128::from(correlation) + i128::from(fresh) * own;
                ((sum + (1 << 31)) >> 32) as i64
            }
        };
        self.before = Some(next);
        normal_probability(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sd_of(values: &[f64]) -> (f64, f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares = values.iter().map(|value| (value - mean).powi(2));
        (mean, (squares.sum::<f64>() / values.len() as f64).sqrt())
    }

    fn table(distribution: u64) -> Vec<f64> {
        let table = quantiles(distribution).unwrap();
        assert_eq!(table.len(), COUNT);
        assert!(table.is_sorted());
        table.iter().map(|&each| each as f64 / SD as f64).collect()
    }

    /// Published quantiles of the standard normal distribution, as in any table of it.
    const NORMAL: [(f64, f64); 6] = [
        (0.5, 0.0),
        (0.75, 0.674_490),
        (0.9, 1.281_552),
        (0.95, 1.644_854),
        (0.99, 2.326_348),
        (0.999, 3.090_232),
    ];

    #[test]
    fn the_normal_distribution_has_its_quantiles() {
        for (probability, quantile) in NORMAL {
            let share = (probability * ALL as f64) as u64;
            let found = normal_quantile(share) as f64 / SD as f64;
            assert!((found - quantile).abs() < 5e-5, "{probability}: {found}");
            let back = normal_probability((quantile * SD as f64) as i64) as f64 / ALL as f64;
            assert!((back - probability).abs() < 5e-6, "{quantile}: {back}");
            let mirrored = normal_quantile(ALL - share) as f64 / SD as f64;
            assert!((mirrored + quantile).abs() < 5e-5);
        }
    }

    #[test]
    fn each_table_has_the_mean_0_and_the_standard_deviation_1() {
        for distribution in 1..=3 {
            let (mean, sd) = sd_of(&table(distribution));
            assert!(mean.abs() < 1e-4 && (sd - 1.0).abs() < 1e-4, "{mean} {sd}");
        }
        assert!(quantiles(0).is_none() && quantiles(4).is_none());
    }

    /// Against the formula in floating point: of the same middles of shares, moved and scaled as they are.
    fn compare(distribution: u64, exact: impl Fn(f64) -> f64) {
        let middles = (0..COUNT).map(|index| (index as f64 + 0.5) / COUNT as f64);
        let exact: Vec<f64> = middles.map(exact).collect();
        let (mean, sd) = sd_of(&exact);
        for (index, (found, exact)) in table(distribution).iter().zip(&exact).enumerate() {
            let exact = (exact - mean) / sd;
            assert!(
                (found - exact).abs() < 2e-4,
                "{index}: {found}, not {exact}"
            );
        }
    }

    fn pareto(probability: f64) -> f64 {
        (1.0 - probability).powf(-1.0 / 3.0)
    }

    #[test]
    fn paretos_distribution_has_its_quantiles() {
        compare(2, pareto);
        // Of 1 to infinity, as the table does not depend on where it begins or how wide it is.
        let table = table(2);
        let at = |probability: f64| table[(probability * COUNT as f64) as usize];
        let found = (at(0.99) - at(0.5)) / (at(0.9) - at(0.5));
        let exact = (pareto(0.99) - pareto(0.5)) / (pareto(0.9) - pareto(0.5));
        assert!((found / exact - 1.0).abs() < 0.01, "{found}, not {exact}");
    }

    #[test]
    fn the_mixture_is_a_quarter_normal_and_three_quarters_paretos() {
        let (normal, pareto) = (table(1), table(2));
        let index = |probability: f64| (probability * COUNT as f64) as usize;
        compare(3, |probability| {
            let at = index(probability);
            normal[at] / 4.0 + 0.75 * pareto[at]
        });
    }

    #[test]
    fn each_value_of_an_own_table_has_the_same_share() {
        let table = [-3, 0, 5];
        let third = ALL / 3;
        for (share, value) in [
            (0, -3),
            (third, -3),
            (third + 1, 0),
            (2 * third + 1, 5),
            (ALL - 1, 5),
        ] {
            assert_eq!(at_share(&table, share), value);
        }
        assert_eq!(at_share(&[7], ALL - 1), 7);
    }

    #[test]
    fn a_table_of_no_link_is_refused() {
        check_own(&[-FURTHEST, 0, 0, FURTHEST]).unwrap();
        for wrong in [
            vec![],
            vec![1, 0],
            vec![0, FURTHEST + 1],
            vec![0; COUNT + 1],
        ] {
            assert!(check_own(&wrong).is_err());
        }
    }

    /// The correlation of neighbours, and of those that are two apart.
    fn correlations(correlation: f64) -> (f64, f64) {
        let (mut row, mut number) = (Correlated::default(), 1u64);
        let values: Vec<f64> = (0..200_000)
            .map(|_| {
                number = number
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                row.next(number >> 32, (correlation * ALL as f64) as u64) as f64 / ALL as f64
            })
            .collect();
        let (mean, sd) = sd_of(&values);
        assert!(
            (mean - 0.5).abs() < 0.02 && (sd - 1.0 / 12f64.sqrt()).abs() < 0.01,
            "{mean} {sd}"
        );
        let at = |lag: usize| {
            let pairs = values.iter().zip(&values[lag..]);
            let products = pairs.map(|(one, other)| (one - mean) * (other - mean));
            products.sum::<f64>() / (values.len() - lag) as f64 / sd.powi(2)
        };
        (at(1), at(2))
    }

    #[test]
    fn neighbours_are_correlated_and_all_stay_alike_likely() {
        for correlation in [0f64, 0.25, 0.9] {
            // Of probabilities, by that of the normal variables behind them (Pearson, 1907).
            let of = |lag: i32| 6.0 / std::f64::consts::PI * (correlation.powi(lag) / 2f64).asin();
            let (next, after) = correlations(correlation);
            assert!((next - of(1)).abs() < 0.015, "{next}, not {}", of(1));
            assert!((after - of(2)).abs() < 0.02, "{after}, not {}", of(2));
        }
    }

    #[test]
    fn a_whole_correlation_repeats_the_first() {
        let mut row = Correlated::default();
        let first = row.next(12_345_678, ALL);
        assert!((0..100).all(|each| row.next(each << 20, ALL).abs_diff(first) < 1 << 20));
    }
}
