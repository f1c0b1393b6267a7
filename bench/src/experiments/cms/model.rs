//! A site made of pages, its readers and its editors. Time is counted, not waited for: a second holds so many page
//! views and so many edits, and the same seed gives the same site each time.

/// Page views in a second.
pub(super) const VIEWS_PER_SECOND: u64 = 200;
/// Edits: one in so many page views.
pub(super) const VIEWS_PER_EDIT: u64 = 100;
/// Pages of the site.
pub(super) const PAGES: u64 = 2_000;
/// Sections, each with its own navigation and footer.
pub(super) const SECTIONS: u64 = 20;
/// Signed-in users.
pub(super) const USERS: u64 = 1_000;
/// Groups of users that see different texts.
pub(super) const ROLES: u64 = 5;
/// Seed of the visitors.
const SEED: u64 = 2_007;

/// What a page is composed of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Part {
    /// One for every role.
    Header,
    /// One for every section and role: it has the titles of the section's pages.
    Navigation,
    /// One for every page and role.
    Content,
    /// One for every section.
    Footer,
    /// One for every user and section.
    User,
}

impl Part {
    /// For keys and the column.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Navigation => "navigation",
            Self::Content => "content",
            Self::Footer => "footer",
            Self::User => "user",
        }
    }
}

/// A piece of a page as it is cached. What it does not depend on is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Fragment {
    pub(super) part: Part,
    pub(super) page: u64,
    pub(super) section: u64,
    pub(super) user: u64,
    pub(super) role: u64,
}

impl Fragment {
    /// Its key.
    pub(super) fn key(&self) -> String {
        let Self { part, page, section, user, role } = self;
        format!("{}:{page}:{section}:{user}:{role}", part.word())
    }
}

/// Somebody looks at a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct View {
    page: u64,
    user: u64,
}

impl View {
    /// What the page is composed of for this user.
    pub(super) fn fragments(self) -> [Fragment; 5] {
        let Self { page, user } = self;
        let (section, role) = (section(page), user % ROLES);
        let none = Fragment { part: Part::Header, page: 0, section: 0, user: 0, role: 0 };
        [
            Fragment { role, ..none },
            Fragment { part: Part::Navigation, section, role, ..none },
            Fragment { part: Part::Content, page: page + 1, section, role, ..none },
            Fragment { part: Part::Footer, section, ..none },
            Fragment { part: Part::User, section, user: user + 1, ..none },
        ]
    }
}

/// The section of a page, counted from one.
fn section(page: u64) -> u64 {
    page % SECTIONS + 1
}

/// Somebody changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edit {
    /// The text and title of a page: its content for all roles, and the navigation of its section.
    Page {
        /// The page, counted from one.
        page: u64,
        /// Its section.
        section: u64,
    },
    /// What a user's box shows, in all sections.
    User {
        /// The user, counted from one.
        user: u64,
    },
    /// The header of all pages.
    Template,
}

impl Edit {
    /// Whether a cached fragment is wrong after this edit.
    pub(super) fn touches(self, fragment: &Fragment) -> bool {
        match (self, fragment.part) {
            (Self::Page { page, .. }, Part::Content) => fragment.page == page,
            (Self::Page { section, .. }, Part::Navigation) => fragment.section == section,
            (Self::User { user }, Part::User) => fragment.user == user,
            (Self::Template, Part::Header) => true,
            _ => false,
        }
    }
}

/// Visitors and editors.
#[derive(Clone, Debug)]
pub(super) struct Site {
    random: fastrand::Rng,
    views: u64,
}

impl Site {
    /// The same each time.
    pub(super) fn new() -> Self {
        Self { random: fastrand::Rng::with_seed(SEED), views: 0 }
    }

    /// The next page view, and the edit that comes before it, if any.
    pub(super) fn next(&mut self) -> (Option<Edit>, View) {
        self.views += 1;
        let edit = self.views.is_multiple_of(VIEWS_PER_EDIT).then(|| self.edit());
        (edit, View { page: self.skewed(PAGES), user: self.skewed(USERS) })
    }

    /// Of twenty edits 15 are of a page, four of a user, one of the template.
    fn edit(&mut self) -> Edit {
        match self.random.u64(..20) {
            0..15 => {
                let page = self.skewed(PAGES);
                Edit::Page { page: page + 1, section: section(page) }
            }
            15..19 => Edit::User { user: self.skewed(USERS) + 1 },
            _ => Edit::Template,
        }
    }

    /// Below `end`; small numbers more often, so that a tenth of the pages has half of the views.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between zero and `end`")]
    fn skewed(&mut self, end: u64) -> u64 {
        ((self.random.f64().powf(3.3) * end as f64) as u64).min(end - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::{Edit, PAGES, Part, Site, View};

    #[test]
    fn visitors_are_the_same_each_time_and_like_some_pages_better() {
        let visit = || {
            let mut site = Site::new();
            (0..10_000).map(|_| site.next()).collect::<Vec<_>>()
        };
        let views = visit();
        assert_eq!(views, visit());
        let popular = views.iter().filter(|(_, view)| view.page < PAGES / 10).count();
        assert!((4_500..5_500).contains(&popular), "{popular} views of a tenth of the pages");
        assert_eq!(views.iter().filter(|(edit, _)| edit.is_some()).count(), 100);
    }

    #[test]
    fn an_edit_touches_what_shows_it_and_nothing_else() {
        let fragments = View { page: 41, user: 7 }.fragments();
        let touched = |edit: Edit| -> Vec<Part> {
            fragments.iter().filter(|one| edit.touches(one)).map(|one| one.part).collect()
        };
        assert_eq!(touched(Edit::Page { page: 42, section: 2 }), [Part::Navigation, Part::Content]);
        assert_eq!(touched(Edit::Page { page: 2, section: 2 }), [Part::Navigation]);
        assert_eq!(touched(Edit::Page { page: 3, section: 3 }), []);
        assert_eq!(touched(Edit::User { user: 8 }), [Part::User]);
        assert_eq!(touched(Edit::Template), [Part::Header]);
    }
}
