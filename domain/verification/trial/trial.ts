import type { CompiledQuery } from '../../dcql/compile.ts';
import type { SupportedFormat } from '../../dcql/formats.ts';
import type { ClaimsPath } from '../../dcql/path.ts';
import { complete } from '../../dcql/vp-token.ts';
import type { JsonObject } from '../../shared/json.ts';
import type { RefusalReason } from '../../shared/refusal.ts';
import { type CheckName, reportOf, untriedChecks } from '../report.ts';
import type { CheckedPresentation } from '../verdict.ts';
import type { Pasted } from './pasted.ts';
import { missingClaims, type Peeked, peek, shownPaths } from './peek.ts';

/** What cannot be known without a request that was made, and answered by a wallet. */
export type Untried = 'nonce' | 'audience' | CheckName;

/** What came of holding one presentation against one credential query. */
export type TriedQuery = {
  readonly id: string;
  readonly result: 'passed' | 'failed';
  readonly reason?: RefusalReason;
  /** Claims that the query asks for and the presentation does not hold, verified or not. */
  readonly missing: readonly ClaimsPath[];
  readonly report: readonly JsonObject[];
};

export type TriedPresentation = {
  readonly format: SupportedFormat;
  /** As it says itself; nobody vouches for that where no query passed. */
  readonly types: readonly string[];
  /** Where its claims stand, never what they say; absent where it cannot be taken apart. */
  readonly shown?: readonly ClaimsPath[];
  /** Each credential query of its format. */
  readonly queries: readonly TriedQuery[];
};

export type Trial = {
  readonly presentations: readonly TriedPresentation[];
  /** What the question would still lack: ids of credential queries, or `credential_sets[…]`. */
  readonly missing: readonly string[];
  readonly untried: readonly Untried[];
};

/** A presentation with the queries that it is held against. */
export type TrialPair = { readonly pasted: Pasted; readonly queryIds: readonly string[] };

/** Each presentation is held against the query that it came for, or against all of its format. */
export function pairsOf(query: CompiledQuery, all: readonly Pasted[]): readonly TrialPair[] {
  return all.map((pasted) => {
    const { format, queryId } = pasted;
    const asked = [...query.credentials.values()].filter(({ id }) => query.requested.has(id));
    const named = asked.filter(({ id }) => id === queryId);
    const fitting = (named.length > 0 ? named : asked).filter((own) => own.format === format);
    return { pasted, queryIds: fitting.map(({ id }) => id) };
  });
}

/** @param checked of each pair, for each of its queries, in their order. */
export function trialOf(query: CompiledQuery, pairs: readonly TrialPair[], checked: readonly (readonly CheckedPresentation[])[]): Trial {
  const passed = new Set(checked.flat().flatMap(({ accepted, queryId }) => (accepted ? [queryId] : [])));
  const formats = [...new Set(pairs.map(({ pasted }) => pasted.format))];
  return {
    presentations: pairs.map(({ pasted }, index) => triedOf(query, pasted, checked[index] ?? [])),
    missing: complete(query, passed).map((what) => (what.kind === 'credential' ? what.id : `credential_sets[${what.index}]`)),
    untried: ['nonce', 'audience', ...new Set(formats.flatMap(untriedChecks))],
  };
}

function triedOf(query: CompiledQuery, pasted: Pasted, checked: readonly CheckedPresentation[]): TriedPresentation {
  const peeked = peek(pasted);
  return {
    format: pasted.format,
    types: peeked?.types ?? [],
    ...(peeked !== undefined && { shown: shownPaths(peeked) }),
    queries: checked.map((one) => queryOf(query, peeked, one)),
  };
}

function queryOf(query: CompiledQuery, peeked: Peeked | undefined, one: CheckedPresentation): TriedQuery {
  const own = query.credentials.get(one.queryId);
  const missing = own === undefined || peeked === undefined ? [] : missingClaims(own, peeked);
  const id = one.queryId;
  return one.accepted
    ? { id, result: 'passed', missing, report: reportOf(one) }
    : { id, result: 'failed', reason: one.reason, missing, report: reportOf(one, one) };
}
