import type { CompiledQuery } from '../../dcql/compile.ts';
import type { SupportedFormat } from '../../dcql/formats.ts';
import type { ClaimsPath } from '../../dcql/path.ts';
import { findMissingAnswers } from '../../dcql/vp-token.ts';
import type { JsonObject } from '../../shared/json.ts';
import type { RefusalReason } from '../../shared/refusal.ts';
import { type CheckName, reportOf, skippedChecks } from '../report.ts';
import type { CheckedPresentation } from '../verdict.ts';
import type { PastedPresentation } from './pasted-presentation.ts';
import { claimPathsOf, findMissingClaims, readUnverified, type UnverifiedPresentation } from './unverified-presentation.ts';

/** Checks that need a request and a wallet's response to it. */
export type SkippedCheck = 'nonce' | 'audience' | CheckName;

/** Result of validating one presentation against one credential query. */
export type TrialQueryResult = {
  readonly id: string;
  readonly result: 'passed' | 'failed';
  readonly reason?: RefusalReason;
  /** Requested claims that the presentation does not contain, verified or not. */
  readonly missing: readonly ClaimsPath[];
  readonly report: readonly JsonObject[];
};

export type TrialPresentationResult = {
  readonly format: SupportedFormat;
  /** Unverified types of the presentation; they are verified only if a query passed. */
  readonly types: readonly string[];
  /** Paths of the claims without values; absent for a malformed presentation. */
  readonly shown?: readonly ClaimsPath[];
  /** Credential queries of its format. */
  readonly queries: readonly TrialQueryResult[];
};

export type Trial = {
  readonly presentations: readonly TrialPresentationResult[];
  /** Missing parts of the presentation request: ids of credential queries, or `credential_sets[…]`. */
  readonly missing: readonly string[];
  readonly untried: readonly SkippedCheck[];
};

/** A presentation with the queries against which it is validated. */
export type TrialPair = { readonly pasted: PastedPresentation; readonly queryIds: readonly string[] };

/** A presentation is validated against the query of its `vp_token` entry, or against all queries of its format. */
export function pairWithQueries(query: CompiledQuery, presentations: readonly PastedPresentation[]): readonly TrialPair[] {
  return presentations.map((pasted) => {
    const { format, queryId } = pasted;
    const requestedQueries = [...query.credentials.values()].filter(({ id }) => query.requested.has(id));
    const namedQueries = requestedQueries.filter(({ id }) => id === queryId);
    const matchingQueries = (namedQueries.length > 0 ? namedQueries : requestedQueries).filter(
      (credentialQuery) => credentialQuery.format === format,
    );
    return { pasted, queryIds: matchingQueries.map(({ id }) => id) };
  });
}

/** @param checked results of each pair, for each of its queries, in their order. */
export function buildTrial(query: CompiledQuery, pairs: readonly TrialPair[], checked: readonly (readonly CheckedPresentation[])[]): Trial {
  const passed = new Set(checked.flat().flatMap(({ accepted, queryId }) => (accepted ? [queryId] : [])));
  const formats = [...new Set(pairs.map(({ pasted }) => pasted.format))];
  return {
    presentations: pairs.map(({ pasted }, index) => trialPresentationResult(query, pasted, checked[index] ?? [])),
    missing: findMissingAnswers(query, passed).map((what) => (what.kind === 'credential' ? what.id : `credential_sets[${what.index}]`)),
    untried: ['nonce', 'audience', ...new Set(formats.flatMap(skippedChecks))],
  };
}

function trialPresentationResult(
  query: CompiledQuery,
  pasted: PastedPresentation,
  checked: readonly CheckedPresentation[],
): TrialPresentationResult {
  const unverified = readUnverified(pasted);
  return {
    format: pasted.format,
    types: unverified?.types ?? [],
    ...(unverified !== undefined && { shown: claimPathsOf(unverified) }),
    queries: checked.map((presentation) => trialQueryResult(query, unverified, presentation)),
  };
}

function trialQueryResult(
  query: CompiledQuery,
  unverified: UnverifiedPresentation | undefined,
  presentation: CheckedPresentation,
): TrialQueryResult {
  const credentialQuery = query.credentials.get(presentation.queryId);
  const missingClaims = credentialQuery === undefined || unverified === undefined ? [] : findMissingClaims(credentialQuery, unverified);
  const id = presentation.queryId;
  return presentation.accepted
    ? { id, result: 'passed', missing: missingClaims, report: reportOf(presentation) }
    : { id, result: 'failed', reason: presentation.reason, missing: missingClaims, report: reportOf(presentation, presentation) };
}
