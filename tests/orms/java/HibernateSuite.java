import static java.util.stream.Collectors.toList;

import jakarta.persistence.*;
import java.math.BigDecimal;
import java.time.*;
import java.util.*;
import java.util.function.Consumer;
import java.util.function.Function;
import org.hibernate.Hibernate;
import org.hibernate.LockMode;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.annotations.Check;
import org.hibernate.annotations.Comment;
import org.hibernate.annotations.CreationTimestamp;
import org.hibernate.annotations.JdbcTypeCode;
import org.hibernate.annotations.UpdateTimestamp;
import org.hibernate.cfg.Configuration;
import org.hibernate.type.SqlTypes;

/** Hibernate 6, unchanged: hbm2ddl, entities, HQL, criteria. See tests/orms/README.md. */
public final class HibernateSuite {
    enum State { DRAFT, PUBLISHED }

    @Entity(name = "Author")
    @Table(name = "authors", indexes = @Index(name = "authors_karma", columnList = "karma, name"))
    static class Author {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
        @Column(length = 80, nullable = false, unique = true) String name;
        @Check(constraints = "karma >= 0") int karma;
        @Version int version;
        @CreationTimestamp Instant created;
        @UpdateTimestamp LocalDateTime changed;
        @OneToMany(mappedBy = "author", cascade = CascadeType.ALL, orphanRemoval = true) List<Post> posts = new ArrayList<>();

        Author() {}

        Author(String name, int karma) {
            this.name = name;
            this.karma = karma;
        }
    }

    @Entity(name = "Post")
    @Table(name = "posts")
    static class Post {
        @Id @GeneratedValue UUID id;
        @ManyToOne(optional = false, fetch = FetchType.LAZY) Author author;
        @Comment("as shown") String title;
        @Column(columnDefinition = "text") String body;
        @Enumerated(EnumType.STRING) State state = State.DRAFT;
        @Column(precision = 10, scale = 2) BigDecimal price;
        Double score;
        boolean shown = true;
        LocalDate day;
        LocalTime hour;
        OffsetDateTime at;
        Duration lasts;
        byte[] raw;
        @JdbcTypeCode(SqlTypes.JSON) Map<String, Object> data;
        @JdbcTypeCode(SqlTypes.ARRAY) List<String> labels;
        @ManyToMany @JoinTable(name = "post_tags") Set<Tag> tags = new HashSet<>();

        Post() {}

        Post(Author author, String title) {
            this.author = author;
            this.title = title;
        }
    }

    @Entity(name = "Tag")
    @Table(name = "tags")
    static class Tag {
        @Id @Column(length = 20) String name;

        Tag() {}

        Tag(String name) {
            this.name = name;
        }
    }

    @Entity(name = "Numbered")
    @Table(name = "numbered")
    static class Numbered {
        @Id @GeneratedValue(strategy = GenerationType.SEQUENCE) @SequenceGenerator(name = "numbered_seq", sequenceName = "numbered_seq", allocationSize = 50) Long id;
        String name;
    }

    /** What a later release adds to the table of tags. */
    @Entity(name = "WiderTag")
    @Table(name = "tags")
    static class WiderTag {
        @Id @Column(length = 20) String name;
        @Column(length = 40) String colour;
    }

    static SessionFactory factory;

    static SessionFactory build(String action, Class<?>... entities) {
        Configuration configuration = new Configuration();
        configuration.setProperty("hibernate.connection.url", Steps.URL).setProperty("hibernate.connection.username", Steps.USER);
        configuration.setProperty("hibernate.connection.password", "").setProperty("hibernate.hbm2ddl.auto", action);
        configuration.setProperty("hibernate.hbm2ddl.halt_on_error", "true").setProperty("hibernate.connection.pool_size", "3");
        configuration.setProperty("hibernate.jdbc.batch_size", "20").setProperty("hibernate.jdbc.time_zone", "UTC");
        for (Class<?> each : entities) {
            configuration.addAnnotatedClass(each);
        }
        return configuration.buildSessionFactory();
    }

    static void change(Consumer<Session> body) {
        factory.inTransaction(body);
    }

    static <T> T ask(Function<Session, T> body) {
        return factory.fromTransaction(body);
    }

    static List<String> names(String hql, Object... arguments) {
        return ask(session -> {
            var query = session.createSelectionQuery(hql, String.class);
            for (int at = 0; at < arguments.length; at++) {
                query.setParameter(at + 1, arguments[at]);
            }
            return query.getResultList();
        });
    }

    public static void main(String[] arguments) {
        java.util.logging.LogManager.getLogManager().reset();
        Steps.check("hbm2ddl creates the tables", () -> factory = build("create", Author.class, Post.class, Tag.class));
        Steps.check("without it, a factory over tables of its own", () -> {
            if (factory == null) {
                Steps.execute("CREATE TABLE authors (karma integer NOT NULL CHECK (karma >= 0), version integer NOT NULL, changed timestamp, created timestamptz,"
                    + " id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, name varchar(80) NOT NULL UNIQUE)");
                Steps.execute("CREATE TABLE posts (price numeric(10, 2), score float8, shown boolean NOT NULL, day date, hour time, at timestamptz, lasts numeric(21, 0),"
                    + " author_id bigint NOT NULL, id uuid PRIMARY KEY, body text, data jsonb, labels text[], raw bytea, state varchar(255), title varchar(255))");
                Steps.execute("CREATE TABLE tags (name varchar(20) PRIMARY KEY)");
                Steps.execute("CREATE TABLE post_tags (Post_id uuid NOT NULL, tags_name varchar(20) NOT NULL, PRIMARY KEY (Post_id, tags_name))");
                factory = build("none", Author.class, Post.class, Tag.class);
            }
        });
        Steps.check("hbm2ddl validates them", () -> build("validate", Author.class, Post.class, Tag.class).close());
        Steps.check("hbm2ddl updates a table by a column", () -> {
            build("update", WiderTag.class).close();
            Steps.same(Steps.query("SELECT count(*) FROM information_schema.columns WHERE table_name = 'tags'"), "2");
        });
        Steps.check("persist with a generated key", () -> change(session -> {
            Author author = new Author("ann", 10);
            session.persist(author);
            Steps.same(author.id != null && author.created != null, true);
        }));
        Steps.check("persist and find all types", () -> {
            OffsetDateTime at = OffsetDateTime.of(2024, 2, 29, 12, 30, 15, 123456000, ZoneOffset.UTC);
            UUID id = ask(session -> {
                Post post = new Post(author(session, "ann"), "first");
                post.body = "text";
                post.state = State.PUBLISHED;
                post.price = new BigDecimal("12.50");
                post.score = 1.25;
                post.shown = false;
                post.day = LocalDate.of(2024, 2, 29);
                post.hour = LocalTime.of(8, 30, 15);
                post.at = at;
                post.lasts = Duration.ofHours(30);
                post.raw = new byte[] {0, (byte) 255};
                session.persist(post);
                return post.id;
            });
            change(session -> {
                Post found = session.find(Post.class, id);
                Steps.same(List.of(found.price, found.score, found.shown, found.day, found.hour, found.at.toInstant(), found.lasts, found.state),
                    List.of(new BigDecimal("12.50"), 1.25, false, LocalDate.of(2024, 2, 29), LocalTime.of(8, 30, 15), at.toInstant(), Duration.ofHours(30), State.PUBLISHED));
                Steps.same(found.raw, new byte[] {0, (byte) 255});
            });
            Steps.same(names("select p.author.name from Post p"), List.of("ann"));
        });
        Steps.check("an array column", () -> {
            change(session -> post(session, "first").labels = new ArrayList<>(List.of("a", "b,c")));
            change(session -> Steps.same(post(session, "first").labels, List.of("a", "b,c")));
            Steps.same(names("select title from Post where array_contains(labels, ?1)", "a"), List.of("first"));
        });
        Steps.check("batches of inserts", () -> change(session -> {
            for (int n = 0; n < 50; n++) {
                session.persist(new Author("a" + n, n));
            }
        }));
        Steps.check("dirty checking, with a version", () -> {
            change(session -> author(session, "a1").karma = 100);
            change(session -> Steps.same(List.of(author(session, "a1").version, author(session, "a1").karma), List.of(1, 100)));
        });
        Steps.check("an older version is an OptimisticLockException", () -> {
            Author old = ask(session -> author(session, "a2"));
            change(session -> author(session, "a2").karma = 5);
            old.karma = 6;
            try {
                change(session -> session.merge(old));
                throw new AssertionError("it was taken");
            } catch (OptimisticLockException expected) {
                Steps.same(ask(session -> author(session, "a2").karma), 5);
            }
        });
        Steps.check("unique values and a CHECK are ConstraintViolationExceptions", () -> {
            Steps.fails("23505", () -> change(session -> session.persist(new Author("ann", 1))));
            Steps.fails("23514", () -> change(session -> session.persist(new Author("less", -1))));
        });
        Steps.check("HQL, conditions, functions, order, pages", () -> {
            Steps.same(names("select name from Author where karma between ?1 and ?2 order by name", 7, 9), List.of("a7", "a8", "a9"));
            Steps.same(names("select upper(name) from Author where name like ?1 order by karma desc limit 2", "a4%"), List.of("A49", "A48"));
            Steps.same(names("select name from Author where name like ?1", "A4%"), List.of());
            Steps.same(names("select concat(name, '-', cast(karma as string)) from Author where name in (?1)", List.of("a7")), List.of("a7-7"));
            Steps.same(names("select coalesce(nullif(name, 'a7'), 'x') from Author where length(name) = 2 and karma = 7 order by name offset 0 rows fetch first 1 row only"), List.of("x"));
            Steps.same(names("select case when karma > 100 then 'many' else 'few' end from Author where name = 'a1'"), List.of("few"));
        });
        Steps.check("HQL, parts of dates and times", () -> {
            Steps.same(names("select cast(year(day) * 100 + month(day) as string) from Post where title = 'first'"), List.of("202402"));
            Steps.same(names("select cast(extract(hour from hour) as string) from Post where day < local date"), List.of("8"));
            Steps.same(names("select title from Post where at < instant and day + 1 day > ?1", LocalDate.of(2024, 2, 29)), List.of("first"));
        });
        Steps.check("HQL, aggregates, groups, HAVING", () -> change(session -> {
            Object[] found = session.createSelectionQuery("select count(*), sum(karma), avg(karma), max(name), count(distinct karma) from Author where name like 'a_'", Object[].class).getSingleResult();
            Steps.same(Arrays.asList(found), List.of(10L, 147L, 14.7, "a9", 9L));
            List<Object[]> groups = session.createSelectionQuery("select mod(karma, 2), count(*) from Author where karma > 1 group by mod(karma, 2) having count(*) > 1 order by 1", Object[].class).getResultList();
            Steps.same(groups.stream().map(each -> each[0]).collect(toList()), List.of(0, 1));
        }));
        Steps.check("HQL, joins, fetch joins, subqueries, EXISTS", () -> {
            Steps.same(names("select p.title from Author a join a.posts p where a.name = 'ann'"), List.of("first"));
            Steps.same(names("select a.name from Author a where exists (select 1 from Post p where p.author = a)"), List.of("ann"));
            Steps.same(names("select name from Author where karma = (select max(karma) from Author)"), List.of("a1"));
            change(session -> {
                Author found = session.createSelectionQuery("from Author a left join fetch a.posts where a.name = 'ann'", Author.class).getSingleResult();
                Steps.same(Hibernate.isInitialized(found.posts) && found.posts.size() == 1, true);
            });
        });
        Steps.check("HQL, union of limited parts", () ->
            Steps.same(names("(select name from Author where name >= 'a3' order by name limit 1) union all (select name from Author order by name limit 1)"), List.of("a3", "a0")));
        Steps.check("HQL, windows and CTEs", () -> {
            Steps.same(names("select cast(row_number() over (order by karma desc) as string) from Author where name in ('a7', 'a8') order by karma"), List.of("2", "1"));
            Steps.same(names("with few as (select name as name from Author where karma < 2) select name from few order by name"), List.of("a0"));
        });
        Steps.check("HQL, update and delete with an alias", () -> change(session -> {
            Steps.same(session.createMutationQuery("update Author a set a.karma = a.karma + 1 where a.name like 'a1_'").executeUpdate(), 10);
            Steps.same(session.createMutationQuery("delete from Author a where a.name like 'a3_'").executeUpdate(), 10);
            Steps.same(session.createMutationQuery("update versioned Author a set a.karma = 0 where a.name = 'a5'").executeUpdate(), 1);
        }));
        Steps.check("HQL, insert with a conflict", () -> change(session -> {
            String hql = "insert into Tag (name) values ('x'), ('y') on conflict (name) do nothing";
            Steps.same(session.createMutationQuery(hql).executeUpdate(), 2);
            Steps.same(session.createMutationQuery(hql).executeUpdate(), 0);
        }));
        Steps.check("many to many", () -> {
            change(session -> {
                Post post = post(session, "first");
                post.tags.add(session.find(Tag.class, "x"));
                post.tags.add(session.find(Tag.class, "y"));
            });
            change(session -> post(session, "first").tags.removeIf(tag -> tag.name.equals("y")));
            Steps.same(names("select t.name from Post p join p.tags t"), List.of("x"));
        });
        Steps.check("criteria", () -> change(session -> {
            var builder = session.getCriteriaBuilder();
            var query = builder.createQuery(Author.class);
            var root = query.from(Author.class);
            query.where(builder.or(builder.ilike(root.get("name"), "ANN"), builder.equal(root.get("karma"), 100))).orderBy(builder.asc(root.get("name")));
            Steps.same(session.createSelectionQuery(query).getResultList().stream().map(each -> each.name).collect(toList()), List.of("a1", "ann"));
        }));
        Steps.check("native queries with parameters", () -> change(session -> {
            Steps.same(session.createNativeQuery("SELECT name FROM authors WHERE karma = :karma", String.class).setParameter("karma", 100).getSingleResult(), "a1");
            Steps.same(session.createNativeQuery("SELECT :n + 1", Integer.class).setParameter("n", 4).getSingleResult(), 5);
        }));
        Steps.check("locks, FOR UPDATE, NOWAIT", () -> change(session -> {
            Steps.same(session.find(Author.class, author(session, "ann").id, LockModeType.PESSIMISTIC_WRITE).name, "ann");
            Steps.same(session.createSelectionQuery("from Author where name = 'a1'", Author.class).setHibernateLockMode(LockMode.UPGRADE_NOWAIT).getSingleResult().name, "a1");
        }));
        Steps.check("SKIP LOCKED", () -> change(session ->
            Steps.same(session.createSelectionQuery("from Author where name = 'a1'", Author.class).setHibernateLockMode(LockMode.UPGRADE_SKIPLOCKED).getSingleResult().name, "a1")));
        Steps.check("scrolling through rows", () -> change(session -> {
            int count = 0;
            try (var rows = session.createSelectionQuery("from Author", Author.class).setFetchSize(7).scroll(org.hibernate.ScrollMode.FORWARD_ONLY)) {
                while (rows.next()) {
                    count++;
                }
            }
            Steps.same(count > 30, true);
        }));
        Steps.check("a rolled back transaction leaves nothing", () -> {
            try {
                change(session -> {
                    session.persist(new Author("gone", 1));
                    session.flush();
                    throw new IllegalStateException();
                });
            } catch (IllegalStateException expected) {
                Steps.same(names("select name from Author where name = 'gone'"), List.of());
            }
        });
        Steps.check("removing takes along what belongs to it", () -> {
            change(session -> session.remove(author(session, "ann")));
            Steps.same(names("select title from Post"), List.of());
        });
        Steps.check("keys from a sequence, fifty at a time", () -> {
            try (SessionFactory own = build("create", Numbered.class)) {
                own.inTransaction(session -> {
                    for (int n = 0; n < 120; n++) {
                        session.persist(new Numbered());
                    }
                });
                Steps.same(Steps.query("SELECT max(id) FROM numbered"), "120");
            }
        });
        Steps.check("hbm2ddl drops the tables", () -> {
            factory.getSchemaManager().dropMappedObjects(false);
            Steps.same(Steps.query("SELECT count(*) FROM information_schema.tables WHERE table_name IN ('authors', 'posts', 'tags')"), "0");
        });
        Steps.run();
    }

    static Author author(Session session, String name) {
        return session.createSelectionQuery("from Author where name = ?1", Author.class).setParameter(1, name).getSingleResult();
    }

    static Post post(Session session, String title) {
        return session.createSelectionQuery("from Post where title = ?1", Post.class).setParameter(1, title).getSingleResult();
    }
}
