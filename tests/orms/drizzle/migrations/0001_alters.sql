ALTER TABLE "users" ALTER COLUMN "email" SET DATA TYPE varchar(120);--> statement-breakpoint
ALTER TABLE "users" ADD COLUMN "changed" timestamp;--> statement-breakpoint
CREATE INDEX "users_age" ON "users" USING btree ("age" DESC NULLS LAST);--> statement-breakpoint
ALTER TABLE "users" ADD CONSTRAINT "users_age_check" CHECK ("users"."age" >= 0);
