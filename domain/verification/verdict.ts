import type { CompiledQuery } from '../dcql/compile.ts';
import { complete } from '../dcql/vp-token.ts';
import type { JsonObject } from '../shared/json.ts';
import type { RefusalReason } from '../shared/refusal.ts';
import type { PresentedIssuer } from './presented-issuer.ts';
import { type ReportedPresentation, reportOf, responseFault } from './report.ts';
import type { Authentication } from './sca/authentication.ts';

/** One presentation after all checks. */
export type CheckedPresentation = ReportedPresentation &
  (
    | {
        readonly accepted: true;
        readonly values: JsonObject;
        readonly issuer: PresentedIssuer;
        /** Of what the issuer signed: the same for one credential, however often it is presented. */
        readonly signedHash: string;
        /** Entries of `transaction_data` that it confirms. */
        readonly confirmed: readonly string[];
        /** How the user was authenticated for what it confirms. */
        readonly authentication?: Authentication;
      }
    | {
        readonly accepted: false;
        readonly reason: RefusalReason;
        readonly detail: string;
        /** The nonce was not ours, so nothing of the whole response may be used. */
        readonly spoilsAll: boolean;
      }
  );

/** One entry of the presentation webhook and of the session's `credentials`. */
export type CredentialResult = JsonObject & { readonly id: string };

export type Verdict = {
  readonly good: boolean;
  /** Per query id: `values`, or `error`. Without any `values` when the verdict is not good. */
  readonly credentials: readonly CredentialResult[];
  readonly report: readonly JsonObject[];
  /** Why it is not good, for the operator. */
  readonly reasons: readonly string[];
};

/**
 * Judges a response by its checked presentations (OpenID4VP 1.0 sections 6.4, 8.6 and 14.1).
 * @param transactionData the entries of the request as they were sent; each wants one confirmation.
 */
export function decideVerdict(query: CompiledQuery, checked: readonly CheckedPresentation[], transactionData: readonly string[]): Verdict {
  const presentations = rejectRepeated(checked);
  const others = sharedBetweenQueries(presentations);
  const report = presentations.flatMap((one) => (one.accepted ? [...reportOf(one), ...others(one)] : reportOf(one, one)));
  const faults = findResponseProblems(query, presentations, transactionData);
  if (faults.length === 0) return { good: true, credentials: goodResults(query, presentations), report, reasons: [] };
  const refusals = presentations.flatMap((one) => (one.accepted ? [] : [`${one.queryId}: ${one.reason}`]));
  return {
    good: false,
    credentials: badResults(query, presentations),
    report: [...report, ...faults.map(({ reason, section }) => responseFault('response', reason, section))],
    reasons: [...new Set([...refusals, ...faults.map(({ reason }) => reason)])],
  };
}

/** A credential counts once for a query, however often it is sent (OpenID4VP 1.0 section 6.1, `multiple`). */
function rejectRepeated(presentations: readonly CheckedPresentation[]): readonly CheckedPresentation[] {
  const seen = new Set<string>();
  return presentations.map((one) => {
    if (!one.accepted) return one;
    const known = `${one.queryId} ${one.signedHash}`;
    if (!seen.has(known)) {
      seen.add(known);
      return one;
    }
    const { queryId, index, format, inputs } = one;
    const refusal = { reason: 'repeated_credential', detail: 'sent before for this query', spoilsAll: false } as const;
    return { queryId, index, format, inputs, accepted: false, ...refusal };
  });
}

/** Says where one credential answers several queries: whoever counts answers has to know. */
function sharedBetweenQueries(presentations: readonly CheckedPresentation[]) {
  const queries = new Map<string, Set<string>>();
  for (const one of presentations) {
    if (!one.accepted) continue;
    const own = queries.get(one.signedHash) ?? new Set();
    queries.set(one.signedHash, own.add(one.queryId));
  }
  return ({ queryId, index, signedHash }: Extract<CheckedPresentation, { accepted: true }>): JsonObject[] => {
    const others = [...(queries.get(signedHash) ?? [])].filter((id) => id !== queryId);
    if (others.length === 0) return [];
    const check = 'one credential for several queries';
    return [
      {
        id: queryId,
        index,
        check,
        result: 'passed',
        input: others.join(' '),
        section: 'OpenID4VP 1.0 section 6.4',
      },
    ];
  };
}

type Fault = { readonly reason: string; readonly section: string };

function findResponseProblems(
  query: CompiledQuery,
  presentations: readonly CheckedPresentation[],
  transactionData: readonly string[],
): readonly Fault[] {
  // OpenID4VP 1.0 section 14.1: a foreign nonce refuses everything.
  if (presentations.some((one) => !one.accepted && one.spoilsAll)) {
    return [{ reason: 'nonce_mismatch', section: 'OpenID4VP 1.0 section 14.1' }];
  }
  const accepted = presentations.filter((one) => one.accepted);
  // OpenID4VP 1.0 section 6.4.2
  const missing = complete(query, new Set(accepted.map(({ queryId }) => queryId))).map((what) => ({
    reason: what.kind === 'credential' ? `missing ${what.id}` : `missing credential_sets[${what.index}]`,
    section: 'OpenID4VP 1.0 section 6.4.2',
  }));
  const confirmed = new Set(accepted.flatMap((one) => one.confirmed));
  // OpenID4VP 1.0 section 8.4: one of the credentials that an entry names confirms it.
  const isConfirmed = transactionData.every((entry) => confirmed.has(entry));
  if (isConfirmed) return missing;
  return [...missing, { reason: 'transaction_data_missing', section: 'OpenID4VP 1.0 section 8.4' }];
}

/** OpenID4VP 1.0 section 6.4.2: what stands in no set was not requested; an optional answer may be absent. */
function goodResults(query: CompiledQuery, presentations: readonly CheckedPresentation[]): CredentialResult[] {
  return resultsOf(query, presentations).flatMap(({ id, own }): CredentialResult[] => {
    if (own.length === 0) return [];
    const accepted = own.filter((one) => one.accepted);
    const [first] = accepted;
    if (first === undefined) return [{ id, error: errorOf(own) }];
    if (query.credentials.get(id)?.multiple !== true)
      return [{ id, values: first.values, issuer: first.issuer, ...authenticationOf(accepted) }];
    const values = accepted.map((one) => one.values);
    return [{ id, values, issuer: accepted.map(({ issuer }) => issuer), ...authenticationOf(accepted) }];
  });
}

/** Of several credentials of one query that which confirms. */
function authenticationOf(accepted: readonly { readonly authentication?: Authentication }[]): JsonObject {
  const found = accepted.find(({ authentication }) => authentication !== undefined)?.authentication;
  return found === undefined ? {} : { authentication: found };
}

/** What was verified of a refused response leaves no trace. */
function badResults(query: CompiledQuery, presentations: readonly CheckedPresentation[]): CredentialResult[] {
  return resultsOf(query, presentations).map(({ id, own }) => ({ id, error: errorOf(own) }));
}

function resultsOf({ requested }: CompiledQuery, presentations: readonly CheckedPresentation[]) {
  return [...requested].map((id) => ({ id, own: presentations.filter(({ queryId }) => queryId === id) }));
}

function errorOf(own: readonly CheckedPresentation[]): RefusalReason | 'missing' | 'response_refused' {
  const refused = own.find((one) => !one.accepted);
  if (refused !== undefined && !refused.accepted) return refused.reason;
  return own.length === 0 ? 'missing' : 'response_refused';
}
