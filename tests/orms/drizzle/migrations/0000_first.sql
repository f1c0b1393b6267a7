CREATE TYPE "public"."state" AS ENUM('draft', 'published');--> statement-breakpoint
CREATE TABLE "posts" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"author" integer NOT NULL,
	"title" text NOT NULL,
	"state" "state" DEFAULT 'draft' NOT NULL,
	"price" numeric(10, 2),
	"score" double precision,
	"shown" boolean DEFAULT true NOT NULL,
	"day" date,
	"hour" time,
	"at" timestamp with time zone,
	"lasts" interval,
	"views" bigint DEFAULT 0,
	"data" jsonb,
	"labels" text[] DEFAULT '{}'::text[] NOT NULL
);
--> statement-breakpoint
CREATE TABLE "users" (
	"id" serial PRIMARY KEY NOT NULL,
	"email" varchar(80) NOT NULL,
	"name" text,
	"age" integer DEFAULT 18 NOT NULL,
	"created" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "users_email_unique" UNIQUE("email")
);
--> statement-breakpoint
ALTER TABLE "posts" ADD CONSTRAINT "posts_author_users_id_fk" FOREIGN KEY ("author") REFERENCES "public"."users"("id") ON DELETE cascade ON UPDATE no action;
