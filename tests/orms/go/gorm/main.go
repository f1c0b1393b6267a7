// GORM, unchanged: AutoMigrate, associations, queries. See tests/orms/README.md.
package main

import (
	"errors"
	"time"

	. "sqlcached.test/orms/steps"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

type Company struct {
	ID   uint   `gorm:"primaryKey"`
	Name string `gorm:"size:80;not null;uniqueIndex"`
}

type User struct {
	gorm.Model
	Name      string `gorm:"size:100;index:idx_name_age,priority:1;comment:as shown"`
	Email     *string
	Age       int       `gorm:"not null;default:18;check:age_positive,age >= 0;index:idx_name_age,priority:2"`
	Birthday  time.Time `gorm:"type:date"`
	Active    bool      `gorm:"default:true"`
	Score     float64
	Balance   string `gorm:"type:numeric(10,2);default:0"`
	Photo     []byte
	Data      string `gorm:"type:jsonb;default:'{}'"`
	CompanyID *uint
	Company   *Company
	Cards     []Card
	Languages []Language `gorm:"many2many:user_languages"`
}

type Card struct {
	ID     uint `gorm:"primaryKey"`
	Number string
	UserID uint `gorm:"not null"`
}

type Language struct {
	Code string `gorm:"primaryKey;size:10"`
}

// UserLater is the model of a later release.
type UserLater struct {
	ID      uint
	Name    string `gorm:"size:200;index:idx_name_age,priority:1"`
	Age     int64  `gorm:"not null;default:21;index:idx_name_age,priority:2"`
	Town    string `gorm:"size:40;not null;default:Ulm"`
	Country string `gorm:"index"`
}

// TableName says that it is the same table.
func (UserLater) TableName() string { return "users" }

var db *gorm.DB

func names(query *gorm.DB) ([]string, error) {
	found := []string{}
	err := query.Model(&User{}).Order("name").Pluck("name", &found).Error
	return found, err
}

func expect(query *gorm.DB, expected ...string) error {
	found, err := names(query)
	return All(err, Same(found, append([]string{}, expected...)))
}

func main() {
	Check("connects", func() (err error) {
		db, err = gorm.Open(postgres.Open(URL("postgres")), &gorm.Config{Logger: logger.Discard, TranslateError: true})
		return err
	})
	Check("AutoMigrate of a table that nothing refers to", func() error { return db.AutoMigrate(&Language{}) })
	Check("AutoMigrate makes the tables, with foreign keys", func() error {
		return db.AutoMigrate(&Company{}, &User{}, &Card{})
	})
	Check("AutoMigrate once more changes nothing", func() error {
		return db.AutoMigrate(&Language{}, &Company{}, &User{}, &Card{})
	})
	Check("Migrator knows tables, columns, indexes and constraints", func() error {
		m := db.Migrator()
		return All(Same(m.HasTable("users"), true), Same(m.HasTable("user_languages"), true), Same(m.HasColumn(&User{}, "email"), true),
			Same(m.HasIndex(&User{}, "idx_name_age"), true), Same(m.HasConstraint(&User{}, "age_positive"), true))
	})
	Check("Migrator knows foreign keys", func() error {
		return Same(db.Migrator().HasConstraint(&Card{}, "fk_users_cards"), true)
	})
	Check("Migrator's column types and indexes", func() error {
		types, err := db.Migrator().ColumnTypes(&User{})
		if err != nil {
			return err
		}
		shown := map[string]string{}
		for _, each := range types {
			shown[each.Name()] = each.DatabaseTypeName()
		}
		indexes, err := db.Migrator().GetIndexes(&User{})
		found := map[string]int{}
		for _, each := range indexes {
			found[each.Name()] = len(each.Columns())
		}
		return All(err, Same(shown["name"], "varchar"), Same(shown["data"], "jsonb"), Same(shown["birthday"], "date"),
			Same(found["idx_name_age"], 2), Same(found["idx_users_deleted_at"], 1))
	})
	Check("Create with all types, First", func() error {
		mail := "ann@example.com"
		day := time.Date(1990, 2, 3, 0, 0, 0, 0, time.UTC)
		user := User{Name: "ann", Email: &mail, Age: 30, Birthday: day, Score: 1.5, Balance: "12.50", Photo: []byte{0, 255}, Data: `{"a": [1]}`}
		if err := db.Create(&user).Error; err != nil {
			return err
		}
		var found User
		err := db.First(&found, user.ID).Error
		return All(err, Same(found.Email, &mail), Same(found.Birthday.Equal(day), true), Same(found.Balance, "12.50"), Same(found.Photo, []byte{0, 255}),
			Same(found.Data, `{"a": [1]}`), Same(found.Active, true), Same(found.CreatedAt.Equal(user.CreatedAt.Truncate(time.Microsecond)), true))
	})
	Check("CreateInBatches", func() error {
		users := []User{}
		for n := 0; n < 20; n++ {
			users = append(users, User{Name: "user" + string(rune('a'+n)), Age: n + 1, Birthday: time.Now()})
		}
		var count int64
		return All(db.CreateInBatches(users, 7).Error, db.Model(&User{}).Where("name LIKE ?", "user%").Count(&count).Error, Same(count, int64(20)))
	})
	Check("upserts with OnConflict", func() error {
		first, second := Company{Name: "acme"}, Company{Name: "acme"}
		return All(db.Create(&first).Error, db.Clauses(clause.OnConflict{DoNothing: true}).Create(&second).Error,
			db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "name"}}, DoUpdates: clause.AssignmentColumns([]string{"name"})}).Create(&Company{Name: "acme"}).Error)
	})
	Check("unique values are ErrDuplicatedKey", func() error {
		return Same(errors.Is(db.Create(&Company{Name: "acme"}).Error, gorm.ErrDuplicatedKey), true)
	})
	Check("a CHECK is an error", func() error {
		return Fails(db.Create(&User{Name: "x", Age: -1, Birthday: time.Now()}).Error, "23514")
	})
	Check("conditions", func() error {
		return All(
			expect(db.Where("age BETWEEN ? AND ?", 3, 4), "userc", "userd"),
			expect(db.Where(map[string]any{"name": "ann", "age": 30}), "ann"),
			expect(db.Where("name IN ?", []string{"usera", "ann"}).Or("age = ?", 2), "ann", "usera", "userb"),
			expect(db.Not("name LIKE ?", "user%"), "ann"), expect(db.Where("name ILIKE ?", "ANN"), "ann"),
			expect(db.Where("email IS NOT NULL"), "ann"), expect(db.Limit(2).Offset(3), "userc", "userd"))
	})
	Check("FirstOrCreate, Attrs, Assign", func() error {
		var company Company
		return All(db.Where(Company{Name: "once"}).Attrs(Company{Name: "once"}).FirstOrCreate(&company).Error,
			Same(company.Name, "once"), db.Where(Company{Name: "once"}).FirstOrCreate(&Company{}).Error,
			Same(errors.Is(db.Where("name = 'none'").First(&Company{}).Error, gorm.ErrRecordNotFound), true))
	})
	Check("Save, Updates, UpdateColumn with expressions and RETURNING", func() error {
		var user User
		var changed []User
		return All(db.Where("name = ?", "usera").First(&user).Error, db.Model(&user).Updates(map[string]any{"age": gorm.Expr("age + ?", 5), "score": 2.5}).Error,
			db.Save(&user).Error, db.Model(&changed).Clauses(clause.Returning{}).Where("age > ?", 18).Where("name <> ?", "ann").Update("active", false).Error,
			Same(len(changed), 2), Same(changed[0].Active, false))
	})
	Check("associations, Preload, Joins", func() error {
		var user, found User
		if err := db.Where("name = ?", "ann").First(&user).Error; err != nil {
			return err
		}
		user.Company = &Company{Name: "ann's"}
		user.Cards = []Card{{Number: "1"}, {Number: "2"}}
		user.Languages = []Language{{Code: "de"}, {Code: "fr"}}
		err := All(db.Save(&user).Error, db.Model(&user).Association("Languages").Delete(Language{Code: "fr"}),
			db.Preload("Cards", "number > ?", "1").Preload(clause.Associations).Joins("Company").First(&found, user.ID).Error)
		if err != nil {
			return err
		}
		return All(Same(found.Company.Name, "ann's"), Same(len(found.Cards), 1), Same(found.Languages, []Language{{Code: "de"}}),
			Same(db.Model(&user).Association("Cards").Count(), int64(2)))
	})
	Check("groups, HAVING, Scan, subqueries", func() error {
		var rows []struct {
			Active bool
			N      int64
			Oldest int
		}
		err := db.Model(&User{}).Select("active, count(*) AS n, max(age) AS oldest").Group("active").Having("count(*) > ?", 0).Order("active").Scan(&rows).Error
		if err != nil {
			return err
		}
		oldest := db.Model(&User{}).Select("max(age)")
		return All(Same(len(rows), 2), Same(rows[1].N, int64(19)), expect(db.Where("age = (?)", oldest), "ann"),
			expect(db.Where("EXISTS (?)", db.Model(&Card{}).Select("1").Where("cards.user_id = users.id")), "ann"))
	})
	Check("JSON queries", func() error {
		return expect(db.Where("data -> 'a' ->> 0 = ?", "1").Where("data @> ?", `{"a": [1]}`), "ann")
	})
	Check("Rows, FindInBatches, Distinct, raw", func() error {
		var n, batches int
		rows, err := db.Model(&User{}).Where("age < 10").Rows()
		if err != nil {
			return err
		}
		for rows.Next() {
			n++
		}
		var some []User
		var ages []int
		err = All(rows.Close(), db.FindInBatches(&some, 8, func(*gorm.DB, int) error { batches++; return nil }).Error,
			db.Model(&User{}).Distinct().Order("age DESC").Limit(1).Pluck("age", &ages).Error)
		var sum int
		return All(err, db.Raw("SELECT sum(age) FROM users WHERE name = @name", map[string]any{"name": "ann"}).Scan(&sum).Error,
			Same(n, 9), Same(batches, 3), Same(ages, []int{30}), Same(sum, 30))
	})
	Check("soft deletion, Unscoped", func() error {
		var count int64
		return All(db.Where("name = ?", "userb").Delete(&User{}).Error, expect(db.Where("name = ?", "userb")),
			db.Unscoped().Model(&User{}).Where("name = ?", "userb").Count(&count).Error, Same(count, int64(1)),
			db.Unscoped().Where("name = ?", "userb").Delete(&User{}).Error)
	})
	Check("transactions, savepoints", func() error {
		back := errors.New("back")
		err := db.Transaction(func(tx *gorm.DB) error {
			return All(tx.Create(&Company{Name: "gone"}).Error, back)
		})
		if !errors.Is(err, back) {
			return err
		}
		err = db.Transaction(func(tx *gorm.DB) error {
			first := tx.Create(&Company{Name: "kept"}).Error
			_ = tx.Transaction(func(inner *gorm.DB) error { return inner.Create(&Company{Name: "kept"}).Error })
			return first
		})
		var found []string
		return All(err, db.Model(&Company{}).Where("name IN ?", []string{"gone", "kept"}).Pluck("name", &found).Error, Same(found, []string{"kept"}))
	})
	Check("locks", func() error {
		return db.Transaction(func(tx *gorm.DB) error {
			var user User
			return All(tx.Clauses(clause.Locking{Strength: "UPDATE"}).First(&user, "name = 'ann'").Error,
				tx.Clauses(clause.Locking{Strength: "SHARE", Table: clause.Table{Name: clause.CurrentTable}}).First(&user, "name = 'ann'").Error)
		})
	})
	Check("SKIP LOCKED", func() error {
		return db.Transaction(func(tx *gorm.DB) error {
			return tx.Clauses(clause.Locking{Strength: "UPDATE", Options: "SKIP LOCKED"}).First(&User{}, "name = 'ann'").Error
		})
	})
	Check("AutoMigrate of a later release widens, adds and changes defaults", func() error {
		return All(db.AutoMigrate(&UserLater{}), db.Create(&UserLater{Name: "later"}).Error, expect(db.Where("name = 'later' AND age = 21 AND town = 'Ulm'").Unscoped(), "later"))
	})
	Check("Migrator alters columns, indexes, constraints, tables, views", func() error {
		m := db.Migrator()
		return All(m.RenameColumn(&UserLater{}, "town", "city"), m.DropColumn(&UserLater{}, "city"), m.DropIndex(&User{}, "idx_name_age"),
			m.DropConstraint(&User{}, "age_positive"), m.RenameTable("languages", "tongues"), Same(m.HasTable("tongues"), true),
			m.CreateView("adults", gorm.ViewOption{Query: db.Model(&User{}).Where("age >= ?", 18), Replace: true}), m.DropView("adults"))
	})
	Check("a failed migration leaves nothing", func() error {
		err := db.Transaction(func(tx *gorm.DB) error {
			return All(tx.Exec("CREATE TABLE half (id int PRIMARY KEY)").Error, tx.Exec("INSERT INTO half VALUES (1), (1)").Error)
		})
		return All(Same(err != nil, true), Same(db.Migrator().HasTable("half"), false))
	})
	Check("DropTable takes what refers to it along", func() error {
		return All(db.Migrator().DropTable("user_languages", &Card{}, &User{}, &Company{}, "tongues"), Same(db.Migrator().HasTable("users"), false))
	})
	Run()
}
