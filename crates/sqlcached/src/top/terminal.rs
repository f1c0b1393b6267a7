//! The terminal: keys in, frames out. It is left as it was found, whatever ends the program.

use std::io::{self, Write as _};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers, poll, read};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use crossterm::{cursor, queue};

use super::frame::{Order, Size, View};
use super::source::News;

/// How long a key or a new frame may wait to be seen.
const LOOK: Duration = Duration::from_millis(50);

/// A terminal of its own screen, as long as this lives.
struct Screen;

impl Screen {
    fn enter() -> io::Result<Self> {
        enable_raw_mode()?;
        let screen = Self;
        let mut out = io::stdout();
        queue!(out, EnterAlternateScreen, cursor::Hide)?;
        out.flush()?;
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let mut out = io::stdout();
        // A terminal that is gone needs nothing.
        let _gone = queue!(out, cursor::Show, LeaveAlternateScreen).and_then(|()| out.flush());
        let _gone = disable_raw_mode();
    }
}

/// Shows frames until somebody quits.
pub(super) fn show(news: &Receiver<News>, title: &str, order: Order) -> io::Result<()> {
    let screen = Screen::enter()?;
    let mut view = View::new(title, order);
    draw(&view)?;
    loop {
        let mut changed = false;
        while poll(if changed { Duration::ZERO } else { LOOK })? {
            match read()? {
                Event::Key(key) if key.kind == KeyEventKind::Release => {}
                Event::Key(key) => match key.code {
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                    KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(()),
                    KeyCode::Char(letter) => {
                        view.order = Order::of_key(letter).unwrap_or(view.order);
                        changed = true;
                    }
                    _ => {}
                },
                Event::Resize(..) => changed = true,
                _ => {}
            }
        }
        match news.try_recv() {
            Ok(news) => {
                view.take(news);
                changed = true;
            }
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => break,
        }
        if changed {
            draw(&view)?;
        }
    }
    drop(screen);
    Err(io::Error::other("nobody asks the server any more"))
}

/// Writes the whole frame at once, so that it does not flicker.
fn draw(view: &View) -> io::Result<()> {
    let (width, height) = size()?;
    let mut out = io::stdout().lock();
    for (line, text) in (0..).zip(view.lines(Size { width, height })) {
        queue!(out, cursor::MoveTo(0, line))?;
        out.write_all(text.as_bytes())?;
        queue!(out, Clear(ClearType::UntilNewLine))?;
    }
    queue!(out, Clear(ClearType::FromCursorDown))?;
    out.flush()
}
