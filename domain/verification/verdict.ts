import type { CompiledQuery } from '../dcql/compile.ts';
import { findMissingAnswers } from '../dcql/vp-token.ts';
import type { JsonObject } from '../shared/json.ts';
import type { RefusalReason } from '../shared/refusal.ts';
import type { PresentedIssuer } from './presented-issuer.ts';
import { type ReportedPresentation, reportOf, responseFault } from './report.ts';
import type { Authentication } from './sca/authentication.ts';

export type CheckedPresentation = ReportedPresentation &
  (
    | {
        readonly accepted: true;
        readonly values: JsonObject;
        readonly issuer: PresentedIssuer;
        /** Hash of the signed part of the credential: identical in each presentation of the same credential. */
        readonly signedHash: string;
        /** Entries of `transaction_data` that it confirms. */
        readonly confirmed: readonly string[];
        /** User authentication for the confirmed entries. */
        readonly authentication?: Authentication;
      }
    | {
        readonly accepted: false;
        readonly reason: RefusalReason;
        readonly detail: string;
        /** True for a wrong nonce, which invalidates the whole response. */
        readonly invalidatesResponse: boolean;
      }
  );

/** One entry of the presentation webhook and of the session's `credentials`. */
export type CredentialResult = JsonObject & { readonly id: string };

export type Verdict = {
  readonly good: boolean;
  /** Results by query id: `values` or `error`. No `values` when the response is refused. */
  readonly credentials: readonly CredentialResult[];
  readonly report: readonly JsonObject[];
  /** Reasons of a refusal, for the operator. */
  readonly reasons: readonly string[];
};

/**
 * Decides on a response by its checked presentations (OpenID4VP 1.0 sections 6.4, 8.6 and 14.1).
 * @param transactionData the entries of the request as sent; each needs one confirmation.
 */
export function decideVerdict(query: CompiledQuery, checked: readonly CheckedPresentation[], transactionData: readonly string[]): Verdict {
  const presentations = rejectRepeated(checked);
  const sharedReport = sharedBetweenQueries(presentations);
  const report = presentations.flatMap((presentation) =>
    presentation.accepted ? [...reportOf(presentation), ...sharedReport(presentation)] : reportOf(presentation, presentation),
  );
  const faults = findResponseProblems(query, presentations, transactionData);
  if (faults.length === 0) return { good: true, credentials: acceptedResults(query, presentations), report, reasons: [] };
  const refusals = presentations.flatMap((presentation) =>
    presentation.accepted ? [] : [`${presentation.queryId}: ${presentation.reason}`],
  );
  return {
    good: false,
    credentials: refusedResults(query, presentations),
    report: [...report, ...faults.map(({ reason, section }) => responseFault('response', reason, section))],
    reasons: [...new Set([...refusals, ...faults.map(({ reason }) => reason)])],
  };
}

/** A credential counts once per query, however often it is sent (OpenID4VP 1.0 section 6.1, `multiple`). */
function rejectRepeated(presentations: readonly CheckedPresentation[]): readonly CheckedPresentation[] {
  const seenKeys = new Set<string>();
  return presentations.map((presentation) => {
    if (!presentation.accepted) return presentation;
    const key = `${presentation.queryId} ${presentation.signedHash}`;
    if (!seenKeys.has(key)) {
      seenKeys.add(key);
      return presentation;
    }
    const { queryId, index, format, inputs } = presentation;
    const refusal = { reason: 'repeated_credential', detail: 'already sent for this query', invalidatesResponse: false } as const;
    return { queryId, index, format, inputs, accepted: false, ...refusal };
  });
}

/** Reports credentials that answer several queries, because a verifier may count answers. */
function sharedBetweenQueries(presentations: readonly CheckedPresentation[]) {
  const queries = new Map<string, Set<string>>();
  for (const presentation of presentations) {
    if (!presentation.accepted) continue;
    const queryIds = queries.get(presentation.signedHash) ?? new Set();
    queries.set(presentation.signedHash, queryIds.add(presentation.queryId));
  }
  return ({ queryId, index, signedHash }: Extract<CheckedPresentation, { accepted: true }>): JsonObject[] => {
    const sharedReport = [...(queries.get(signedHash) ?? [])].filter((id) => id !== queryId);
    if (sharedReport.length === 0) return [];
    const check = 'one credential for several queries';
    return [{ id: queryId, index, check, result: 'passed', input: sharedReport.join(' '), section: 'OpenID4VP 1.0 section 6.4' }];
  };
}

type Fault = { readonly reason: string; readonly section: string };

function findResponseProblems(
  query: CompiledQuery,
  presentations: readonly CheckedPresentation[],
  transactionData: readonly string[],
): readonly Fault[] {
  // OpenID4VP 1.0 section 14.1: a wrong nonce refuses the whole response.
  if (presentations.some((presentation) => !presentation.accepted && presentation.invalidatesResponse)) {
    return [{ reason: 'nonce_mismatch', section: 'OpenID4VP 1.0 section 14.1' }];
  }
  const accepted = presentations.filter((presentation) => presentation.accepted);
  // OpenID4VP 1.0 section 6.4.2
  const missingProblems = findMissingAnswers(query, new Set(accepted.map(({ queryId }) => queryId))).map((what) => ({
    reason: what.kind === 'credential' ? `missing ${what.id}` : `missing credential_sets[${what.index}]`,
    section: 'OpenID4VP 1.0 section 6.4.2',
  }));
  const confirmed = new Set(accepted.flatMap((presentation) => presentation.confirmed));
  // OpenID4VP 1.0 section 8.4: one of the named credentials must confirm each entry.
  const isConfirmed = transactionData.every((entry) => confirmed.has(entry));
  if (isConfirmed) return missingProblems;
  return [...missingProblems, { reason: 'transaction_data_missing', section: 'OpenID4VP 1.0 section 8.4' }];
}

/** OpenID4VP 1.0 section 6.4.2: queries outside the sets were not requested; an optional answer may be absent. */
function acceptedResults(query: CompiledQuery, presentations: readonly CheckedPresentation[]): CredentialResult[] {
  return resultsOf(query, presentations).flatMap(({ id, own: queryIds }): CredentialResult[] => {
    if (queryIds.length === 0) return [];
    const accepted = queryIds.filter((presentation) => presentation.accepted);
    const [firstAccepted] = accepted;
    if (firstAccepted === undefined) return [{ id, error: errorOf(queryIds) }];
    if (query.credentials.get(id)?.multiple !== true)
      return [{ id, values: firstAccepted.values, issuer: firstAccepted.issuer, ...authenticationOf(accepted) }];
    const values = accepted.map((presentation) => presentation.values);
    return [{ id, values, issuer: accepted.map(({ issuer }) => issuer), ...authenticationOf(accepted) }];
  });
}

/** The authentication of the credential that confirms, if a query has several credentials. */
function authenticationOf(accepted: readonly { readonly authentication?: Authentication }[]): JsonObject {
  const authenticated = accepted.find(({ authentication }) => authentication !== undefined)?.authentication;
  return authenticated === undefined ? {} : { authentication: authenticated };
}

/** A refused response leaves no verified values. */
function refusedResults(query: CompiledQuery, presentations: readonly CheckedPresentation[]): CredentialResult[] {
  return resultsOf(query, presentations).map(({ id, own: queryIds }) => ({ id, error: errorOf(queryIds) }));
}

function resultsOf({ requested }: CompiledQuery, presentations: readonly CheckedPresentation[]) {
  return [...requested].map((id) => ({ id, own: presentations.filter(({ queryId }) => queryId === id) }));
}

function errorOf(queryIds: readonly CheckedPresentation[]): RefusalReason | 'missing' | 'response_refused' {
  const refusedPresentation = queryIds.find((presentation) => !presentation.accepted);
  if (refusedPresentation !== undefined && !refusedPresentation.accepted) return refusedPresentation.reason;
  return queryIds.length === 0 ? 'missing' : 'response_refused';
}
