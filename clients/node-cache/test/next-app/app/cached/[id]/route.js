import { cacheLife, cacheTag } from "next/cache";

async function made(id) {
  "use cache";
  cacheTag(`product:${id}`, "shop");
  cacheLife({ stale: 60, revalidate: 600, expire: 3600 });
  return crypto.randomUUID();
}

export async function GET(_request, { params }) {
  return new Response(await made((await params).id));
}
