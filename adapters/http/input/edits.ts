import type { Precondition } from '../../../application/ports/repositories.ts';
import type { EditTags } from '../../../application/tenants/edit-tags.ts';
import { resourceOf } from '../../../domain/resources.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { Input, Reply, Route } from '../route.ts';

/** RFC 9110 section 8.8.3; tags of other services may contain commas. */
const ENTITY_TAG = /(?:W\/)?"[\x21\x23-\x7e]*"/g;
const ENTITY_TAGS = new RegExp(`^${ENTITY_TAG.source}(?:[ \\t]*,[ \\t]*${ENTITY_TAG.source})*$`);
/** Clients have no reason to send more. */
const MAX_TAGS = 20;

/**
 * Precondition that `If-Match` sets for the resource that a route edits (RFC 9110 section 13.1.1).
 * @throws Failure `invalid_input` for a route that edits no single resource, and for a header without valid tags.
 */
export function preconditionOf(
  route: Route,
  input: Pick<Input<never, unknown, unknown, unknown>, 'params' | 'body'>,
  ifMatch: string | undefined,
  editTags: EditTags,
): Precondition | undefined {
  if (ifMatch === undefined) return undefined;
  const { edits, method } = route;
  if (edits?.id === undefined) throw new Failure('invalid_input', 'If-Match is not supported here; remove it');
  const { kind } = edits;
  const tags = parseEntityTags(ifMatch);
  return {
    kind,
    id: edits.id(input),
    holds(resource) {
      const currentResource = resource ?? resourceOf(kind).unset;
      // A missing resource is reported by the use case that changes or removes it.
      if (currentResource === undefined) return method === 'patch' || method === 'delete';
      return tags === '*' || tags.some((tag) => editTags.matches(tag, kind, currentResource));
    },
  };
}

/** Adds the `ETag` of the resource that the response shows. */
export function withTag({ edits }: Route, answer: Reply, editTags: EditTags): Reply {
  if (edits === undefined || !('json' in answer) || answer.storedResource === undefined) return answer;
  const { storedResource: resource, ...response } = answer;
  return { ...response, headers: { ...answer.headers, ETag: `"${editTags.tagOf(edits.kind, resource)}"` } };
}

/** @returns the tags without quotes. Weak tags are left out: they never match (RFC 9110 section 8.8.3.2). */
function parseEntityTags(ifMatch: string): '*' | readonly string[] {
  if (ifMatch.trim() === '*') return '*';
  const entries = ifMatch.match(ENTITY_TAG) ?? [];
  if (!ENTITY_TAGS.test(ifMatch.trim()) || entries.length > MAX_TAGS) {
    throw new Failure('invalid_input', 'If-Match must be the ETag of an earlier response, with its quotes');
  }
  return entries.filter((entry) => entry.startsWith('"')).map((entry) => entry.slice(1, -1));
}
