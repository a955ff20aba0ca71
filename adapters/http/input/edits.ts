import type { Precondition } from '../../../application/ports/repositories.ts';
import type { EditTags } from '../../../application/tenants/edit-tags.ts';
import { resourceOf } from '../../../domain/resources.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { Input, Reply, Route } from '../route.ts';

/** RFC 9110 section 8.8.3; tags of others than this service may have commas. */
const ENTITY_TAG = /(?:W\/)?"[\x21\x23-\x7e]*"/g;
const ENTITY_TAGS = new RegExp(`^${ENTITY_TAG.source}(?:[ \\t]*,[ \\t]*${ENTITY_TAG.source})*$`);
/** Far more than a client has reason to send. */
const MAX_TAGS = 20;

/**
 * What `If-Match` demands of the thing that a route edits (RFC 9110 section 13.1.1).
 * @throws Failure `invalid_input` for a route that edits no single thing, and for a header that names no tags.
 */
export function preconditionOf(
  route: Route,
  input: Pick<Input<never, unknown, unknown, unknown>, 'params' | 'body'>,
  ifMatch: string | undefined,
  editTags: EditTags,
): Precondition | undefined {
  if (ifMatch === undefined) return undefined;
  const { edits, method } = route;
  if (edits?.id === undefined) throw new Failure('invalid_input', 'If-Match is not for this; leave it out');
  const { kind } = edits;
  const tags = read(ifMatch);
  return {
    kind,
    id: edits.id(input),
    holds(stored) {
      const found = stored ?? resourceOf(kind).unset;
      // What is not there is reported as such by who would change or remove it.
      if (found === undefined) return method === 'patch' || method === 'delete';
      return tags === '*' || tags.some((tag) => editTags.isOf(tag, kind, found));
    },
  };
}

/** Adds the `ETag` of what the answer shows. */
export function withTag({ edits }: Route, answer: Reply, editTags: EditTags): Reply {
  if (edits === undefined || !('json' in answer) || answer.shown === undefined) return answer;
  const { shown, ...rest } = answer;
  return { ...rest, headers: { ...answer.headers, ETag: `"${editTags.of(edits.kind, shown)}"` } };
}

/** @returns tags without quotes. Weak ones are left out: they never match (RFC 9110 section 8.8.3.2). */
function read(ifMatch: string): '*' | readonly string[] {
  if (ifMatch.trim() === '*') return '*';
  const entries = ifMatch.match(ENTITY_TAG) ?? [];
  if (!ENTITY_TAGS.test(ifMatch.trim()) || entries.length > MAX_TAGS) {
    throw new Failure('invalid_input', 'If-Match takes the ETag of an earlier answer, in its quotes');
  }
  return entries.filter((entry) => entry.startsWith('"')).map((entry) => entry.slice(1, -1));
}
