import { unstable_cache } from "next/cache";

export const revalidate = 3600;
export const dynamicParams = true;

export async function generateStaticParams() {
  return [{ id: "built" }];
}

/** A page that is made once and kept, with the tags of what it shows. */
export default async function Product({ params }) {
  const { id } = await params;
  const made = await unstable_cache(async () => crypto.randomUUID(), [id], { tags: [`product:${id}`, "shop"], revalidate: 3600 })();
  return (
    <main>
      <i>{made}</i> <b>{crypto.randomUUID()}</b>
    </main>
  );
}
