import { z } from 'zod';
import { type Route, route } from '../route.ts';
import { Document } from '../shapes.ts';

/** Metadata changes rarely, but a change must reach wallets soon. */
export const DOCUMENT_HEADERS = { 'Cache-Control': 'public, max-age=60' };

export const PUBLIC_DOCUMENT = { method: 'get', surface: 'document', access: 'public' } as const;

/** Creates a route for a public JSON document. */
export function documentRoute<Params extends z.ZodType>(
  description: Pick<Route, 'operationId' | 'exampleParameters' | 'path' | 'summary' | 'tag'> & {
    readonly params: Params;
    readonly responses?: Route['responses'];
  },
  readText: (params: z.output<Params>) => Promise<string>,
): Route {
  return route({
    ...PUBLIC_DOCUMENT,
    responses: { 200: Document },
    ...description,
    async handle({ params }) {
      const text = await readText(params);
      return { status: 200, text, contentType: 'application/json', headers: DOCUMENT_HEADERS };
    },
  });
}

export const KEY_SET = { responses: { 200: z.object({ keys: z.array(Document) }) } };
