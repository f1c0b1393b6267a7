//! Results as pictures: lines over a sweep, and bars on a logarithmic scale. A subject has the same colour in all of
//! them, and quartiles are drawn beside every median.

use std::error::Error;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use crate::failure::{Context, Result};
use crate::summary::{Summary, digits};

/// Width and height of a picture with axes.
const SIZE: (u32, u32) = (1_080, 480);
/// What of the width the names of the lines take: as much as the longest needs.
const LEGEND_WIDTH: u32 = 240;
/// Where they begin, and how far apart they stand.
const LEGEND_TOP: i32 = 60;
const LEGEND_LINE: i32 = 22;
/// Height of one bar with its room.
const BAR_HEIGHT: u32 = 34;
/// What bars need above and below.
const BAR_FRAME: u32 = 90;
/// Letters.
const FONT: &str = "sans-serif";
/// Bars end here at the latest, as a share of the width: their labels stand behind them.
const BAR_REACH: f64 = 0.5;

/// The subjects with a colour of their own; the longest name that a label begins with decides.
const COLOURS: [(&str, RGBColor); 14] = [
    ("sqlcached", RGBColor(20, 90, 180)),
    ("sqlcached SQL", RGBColor(0, 160, 200)),
    ("sqlcached shared memory", RGBColor(90, 60, 160)),
    ("running", RGBColor(60, 120, 90)),
    ("memcached", RGBColor(40, 140, 60)),
    ("memcached, generation", RGBColor(150, 190, 40)),
    ("redis", RGBColor(200, 50, 40)),
    ("redis allkeys-lfu", RGBColor(240, 130, 110)),
    ("postgresql", RGBColor(110, 110, 110)),
    ("postgresql unlogged", RGBColor(160, 160, 160)),
    ("mariadb", RGBColor(190, 120, 40)),
    ("sqlite", RGBColor(150, 90, 150)),
    ("LMDB", RGBColor(140, 20, 80)),
    ("bound", RGBColor(40, 40, 40)),
];
/// Of these everybody else has one that the letters of the label choose.
const OTHERS: [RGBColor; 4] =
    [RGBColor(30, 30, 30), RGBColor(0, 120, 120), RGBColor(140, 70, 0), RGBColor(120, 0, 90)];

/// An axis.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// What it shows, with the unit.
    pub(crate) label: String,
    /// Each decade has the same length.
    pub(crate) logarithmic: bool,
}

impl Axis {
    /// An axis where equal lengths are equal differences.
    pub(crate) fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), logarithmic: false }
    }

    /// An axis where equal lengths are equal ratios.
    pub(crate) fn logarithmic(label: impl Into<String>) -> Self {
        Self { label: label.into(), logarithmic: true }
    }

    /// From a little below the least to a little above the greatest figure.
    fn range(&self, figures: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
        let high = figures.clone().fold(f64::MIN_POSITIVE, f64::max);
        if !self.logarithmic {
            return (0.0, high * 1.08);
        }
        let low = figures.filter(|&figure| figure > 0.0).fold(high, f64::min);
        (low * 0.7, high * 1.4)
    }
}

/// A line of a chart.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// Who it is.
    pub(crate) label: String,
    /// Where it goes.
    pub(crate) points: Vec<(f64, Summary)>,
}

/// A limit: a vertical line that somebody cannot cross.
#[derive(Clone, Debug)]
pub(crate) struct Wall {
    /// Where on the x axis.
    pub(crate) at: f64,
    /// What ends there.
    pub(crate) label: String,
}

/// Lines over a sweep.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// Above the picture.
    pub(crate) title: String,
    /// What is swept.
    pub(crate) x: Axis,
    /// What it costs or brings.
    pub(crate) y: Axis,
    /// A line for each subject.
    pub(crate) series: Vec<Series>,
    /// Limits met on the way.
    pub(crate) walls: Vec<Wall>,
}

/// A bar for each subject, on a logarithmic scale.
#[derive(Clone, Debug)]
pub(crate) struct Bars {
    /// Above the picture.
    pub(crate) title: String,
    /// Behind every figure.
    pub(crate) unit: &'static str,
    /// Who, and how much.
    pub(crate) rows: Vec<(String, Summary)>,
}

/// A picture that cannot be drawn.
type Drawn = std::result::Result<(), Box<dyn Error>>;
/// What is drawn upon.
type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;

impl Chart {
    /// The picture.
    pub(crate) fn svg(&self) -> Result<String> {
        paint(SIZE, |canvas| self.draw(canvas)).context(|| format!("draw {}", self.title))
    }

    fn draw(&self, canvas: &Canvas<'_>) -> Drawn {
        let points = self.series.iter().flat_map(|series| series.points.iter());
        let walls = self.walls.iter().map(|wall| wall.at);
        let (left, right) = self.x.range(points.clone().map(|(x, _)| *x).chain(walls));
        let (low, high) = self.y.range(points.flat_map(|(_, y)| [y.low, y.high]));
        match (self.x.logarithmic, self.y.logarithmic) {
            (false, false) => self.draw_in(canvas, left..right, low..high, high),
            (true, false) => self.draw_in(canvas, (left..right).log_scale(), low..high, high),
            (false, true) => self.draw_in(canvas, left..right, (low..high).log_scale(), high),
            (true, true) => self.draw_in(canvas, (left..right).log_scale(), (low..high).log_scale(), high),
        }
    }

    fn draw_in<X, Y>(&self, canvas: &Canvas<'_>, x: X, y: Y, top: f64) -> Drawn
    where
        X: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
        Y: AsRangedCoord<Value = f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let (plane, legend) = canvas.split_horizontally(SIZE.0 - LEGEND_WIDTH);
        self.draw_legend(&legend)?;
        let mut chart = ChartBuilder::on(&plane)
            .caption(&self.title, (FONT, 18))
            .margin(14)
            .x_label_area_size(46)
            .y_label_area_size(84)
            .build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .x_desc(&self.x.label)
            .y_desc(&self.y.label)
            .x_label_formatter(&|x| digits(*x).trim_end_matches(".00").to_owned())
            .y_label_formatter(&|y| digits(*y).trim_end_matches(".00").to_owned())
            .light_line_style(WHITE)
            .draw()?;
        for wall in &self.walls {
            chart.draw_series(LineSeries::new(
                [(wall.at, 0.0_f64.max(top * 1e-9)), (wall.at, top)],
                BLACK.mix(0.4),
            ))?;
            chart.draw_series([Text::new(wall.label.clone(), (wall.at, top), (FONT, 12).into_font())])?;
        }
        for series in &self.series {
            let colour = colour(&series.label);
            let medians = series.points.iter().map(|(x, y)| (*x, y.median));
            chart.draw_series(LineSeries::new(medians.clone(), colour.stroke_width(2)))?;
            chart.draw_series(medians.map(|point| Circle::new(point, 3, colour.filled())))?;
            let spreads = series.points.iter().map(|(x, y)| [(*x, y.low), (*x, y.high)]);
            chart.draw_series(spreads.map(|ends| PathElement::new(ends, colour.mix(0.6))))?;
        }
        Ok(())
    }
}

impl Chart {
    /// Who is who, beside the lines and never upon them.
    fn draw_legend(&self, canvas: &Canvas<'_>) -> Drawn {
        for (place, series) in (0..).zip(&self.series) {
            let y = LEGEND_TOP + place * LEGEND_LINE;
            canvas.draw(&PathElement::new([(0, y), (18, y)], colour(&series.label).stroke_width(2)))?;
            canvas.draw(&Text::new(series.label.clone(), (24, y - 7), (FONT, 13).into_font()))?;
        }
        Ok(())
    }
}

impl Bars {
    /// The picture.
    pub(crate) fn svg(&self) -> Result<String> {
        let rows = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        let height = BAR_FRAME + rows.saturating_mul(BAR_HEIGHT);
        paint((SIZE.0, height), |canvas| self.draw(canvas)).context(|| format!("draw {}", self.title))
    }

    fn draw(&self, canvas: &Canvas<'_>) -> Drawn {
        let figures = self.rows.iter().map(|(_, figure)| figure.median).filter(|&figure| figure > 0.0);
        let high = figures.clone().fold(f64::MIN_POSITIVE, f64::max);
        let low = figures.fold(high, f64::min) * 0.5;
        let right = low * (high / low).powf(1.0 / BAR_REACH);
        let rows = self.rows.len() as f64;
        let mut chart = ChartBuilder::on(canvas)
            .caption(&self.title, (FONT, 18))
            .margin(14)
            .x_label_area_size(30)
            .build_cartesian_2d((low..right).log_scale(), 0.0..rows)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .light_line_style(WHITE)
            // Beyond the longest bar there is room for its words only.
            .x_label_formatter(&|x| {
                if *x > high * 2.0 { String::new() } else { digits(*x).trim_end_matches(".00").to_owned() }
            })
            .draw()?;
        for (index, (label, figure)) in self.rows.iter().enumerate() {
            let top = rows - index as f64;
            let bar =
                Rectangle::new([(low, top - 0.85), (figure.median, top - 0.15)], colour(label).filled());
            chart.draw_series([bar])?;
            let spread =
                PathElement::new([(figure.low.max(low), top - 0.5), (figure.high, top - 0.5)], BLACK);
            chart.draw_series([spread])?;
            let text = format!("{label}: {} {}", digits(figure.median), self.unit);
            let end = figure.median.max(figure.high) * (right / low).powf(0.01);
            chart.draw_series([Text::new(text, (end, top - 0.3), (FONT, 14).into_font())])?;
        }
        Ok(())
    }
}

fn paint(
    size: (u32, u32),
    draw: impl FnOnce(&Canvas<'_>) -> Drawn,
) -> std::result::Result<String, Box<dyn Error>> {
    let mut svg = String::new();
    {
        let canvas = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        canvas.fill(&WHITE)?;
        draw(&canvas)?;
        canvas.present()?;
    }
    Ok(svg)
}

fn colour(label: &str) -> RGBColor {
    let known = COLOURS.iter().filter(|(name, _)| label.starts_with(name));
    let other = || OTHERS[label.bytes().map(usize::from).sum::<usize>() % OTHERS.len()];
    known.max_by_key(|(name, _)| name.len()).map_or_else(other, |(_, colour)| *colour)
}

#[cfg(test)]
mod tests {
    use super::{Axis, Bars, Chart, Series, Wall, colour};
    use crate::summary::Summary;

    fn exact(figure: f64) -> Summary {
        Summary { median: figure, low: figure, high: figure }
    }

    #[test]
    fn a_chart_shows_its_series_and_walls_on_every_kind_of_axis() {
        for (x, y) in [(true, true), (true, false), (false, true), (false, false)] {
            let axis = |logarithmic| Axis { label: "size".into(), logarithmic };
            let points = vec![(10.0, exact(2.0)), (1_000.0, Summary { median: 8.0, low: 6.0, high: 9.0 })];
            let series = vec![Series { label: "memcached".into(), points }];
            let walls = vec![Wall { at: 250.0, label: "the wall".into() }];
            let chart = Chart { title: "A title".into(), x: axis(x), y: axis(y), series, walls };
            let svg = chart.svg().unwrap();
            for text in ["A title", "memcached", "the wall", "</svg>"] {
                assert!(svg.contains(text), "{text} is missing");
            }
            assert!(!svg.contains("NaN") && !svg.contains("inf"));
        }
    }

    #[test]
    fn bars_carry_their_figures() {
        let bars = vec![("sqlcached".into(), exact(12.0)), ("memcached, flushed".into(), exact(340_000.0))];
        let svg = Bars { title: "One page".into(), unit: "us", rows: bars }.svg().unwrap();
        assert!(svg.contains("sqlcached: 12.0 us") && svg.contains("memcached, flushed: 340,000 us"));
    }

    #[test]
    fn the_longest_name_gives_the_colour() {
        assert_eq!(colour("sqlcached SQL, 2 threads"), colour("sqlcached SQL"));
        assert_ne!(colour("sqlcached SQL"), colour("sqlcached"));
    }
}
