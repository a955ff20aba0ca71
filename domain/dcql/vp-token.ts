import { isJsonObject } from '../shared/json.ts';
import { Refusal } from '../shared/refusal.ts';
import type { CompiledQuery } from './compile.ts';

/** The rule of OpenID4VP 1.0 section 8.1 that a `vp_token` breaks. */
export type VpTokenFault =
  | 'vp_token_not_object'
  | 'unknown_query_id'
  | 'not_an_array'
  | 'empty_array'
  | 'multiple_not_allowed'
  | 'not_a_string';

/** A part of the query without a valid answer: a credential query, or a required credential set. */
export type MissingAnswer =
  | { readonly kind: 'credential'; readonly id: string }
  | { readonly kind: 'credential_set'; readonly index: number };

/**
 * Presentations by credential query id, from a parsed `vp_token`.
 * @throws Refusal `malformed`, whose detail begins with a `VpTokenFault`: the whole response is refused.
 */
export function parseVpToken(value: unknown, query: CompiledQuery): Map<string, readonly string[]> {
  // OpenID4VP 1.0 section 8.1: an object; bare strings and arrays belong to earlier drafts.
  if (!isJsonObject(value)) throw malformedVpToken('vp_token_not_object');
  const presentations = new Map<string, readonly string[]>();
  for (const [id, list] of Object.entries(value)) {
    const credential = query.credentials.get(id);
    // The name is untrusted text of the wallet, so it is not reported.
    if (credential === undefined) throw malformedVpToken('unknown_query_id');
    // OpenID4VP 1.0 section 8.1: a non-empty array, even of one presentation.
    if (!Array.isArray(list)) throw malformedVpToken('not_an_array', id);
    if (list.length === 0) throw malformedVpToken('empty_array', id);
    // OpenID4VP 1.0 section 6.1: one presentation unless `multiple` is true.
    if (list.length > 1 && !credential.multiple) throw malformedVpToken('multiple_not_allowed', id);
    // OpenID4VP 1.0 appendices B.2 and B.3: presentations of the supported formats are strings.
    if (!list.every((presentation) => typeof presentation === 'string')) throw malformedVpToken('not_a_string', id);
    presentations.set(id, list);
  }
  return presentations;
}

function malformedVpToken(rule: VpTokenFault, queryId?: string): Refusal {
  return new Refusal('malformed', queryId === undefined ? rule : `${rule} in ${queryId}`);
}

/**
 * Missing parts when only the presentations of `survivingIds` passed every check; empty when the response satisfies the query (OpenID4VP
 * 1.0 section 6.4.2).
 */
export function findMissingAnswers(query: CompiledQuery, survivingIds: ReadonlySet<string>): readonly MissingAnswer[] {
  if (query.sets === undefined) {
    return [...query.credentials.keys()].filter((id) => !survivingIds.has(id)).map((id) => ({ kind: 'credential', id }));
  }
  return query.sets.flatMap(({ options, required }, index): MissingAnswer[] => {
    const isMet = !required || options.some((option) => option.every((id) => survivingIds.has(id)));
    return isMet ? [] : [{ kind: 'credential_set', index }];
  });
}
