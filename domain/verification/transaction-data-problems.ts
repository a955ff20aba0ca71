import type { DcqlQuery } from '../dcql/query.ts';
import type { ConfirmingElement } from '../formats/mdoc/transaction-data.ts';
import { findScaProblems, type ScaSchemas } from './sca/payload.ts';

type Entry = {
  readonly type: string;
  readonly credential_ids: readonly string[];
  readonly transaction_data_hashes_alg?: readonly string[] | undefined;
  readonly payload?: unknown;
};
type TransactionDataSettings = {
  readonly transactionDataElements?: Elements | null | undefined;
  readonly transactionDataSchemas?: ScaSchemas | null | undefined;
};
type Elements = { readonly [type: string]: ConfirmingElement };
type CredentialQuery = DcqlQuery['credentials'][number];
type Fault = { path: (string | number)[]; message: string };

/** Reasons why no wallet could confirm these entries (OpenID4VP 1.0 section 8.4). */
export function findTransactionDataProblems(
  entries: readonly Entry[],
  query: DcqlQuery,
  { transactionDataElements, transactionDataSchemas }: TransactionDataSettings,
): readonly Fault[] {
  const elements = transactionDataElements ?? {};
  const queries = new Map(query.credentials.map((credential) => [credential.id, credential]));
  const requested = requestedIds(query);
  const faults = entries.flatMap((entry, index) =>
    entry.credential_ids.flatMap((id, position): Fault[] => {
      const credential = queries.get(id);
      const message =
        credential === undefined ? 'no credential query has this id' : findEntryProblem(entry, credential, requested, elements);
      return message === undefined ? [] : [{ path: [index, 'credential_ids', position], message }];
    }),
  );
  const payloads = entries.flatMap((entry, index) =>
    findScaProblems(entry, transactionDataSchemas ?? {}).map(({ path, message }) => ({ path: [index, ...path], message })),
  );
  const algorithms = query.credentials.flatMap((credential) => findAlgorithmProblems(entries, credential));
  return [...faults, ...payloads, ...algorithms];
}

/** OpenID4VP 1.0 section 6.4.2: with `credential_sets` only credentials in the sets are requested. */
function requestedIds({ credentials, credential_sets }: DcqlQuery): ReadonlySet<string> {
  return new Set(
    credential_sets === undefined ? credentials.map(({ id }) => id) : credential_sets.flatMap(({ options }) => options.flat()),
  );
}

function findEntryProblem(
  { type }: Entry,
  { id, format, require_cryptographic_holder_binding: isBound }: CredentialQuery,
  requested: ReadonlySet<string>,
  elements: Elements,
): string | undefined {
  if (!requested.has(id)) return 'no option of credential_sets has this query, so it is never presented';
  // OpenID4VP 1.0 appendix B.2.1: the type determines the element that a device signs
  if (format === 'mso_mdoc' && !Object.hasOwn(elements, type)) {
    return `an mso_mdoc confirms it in an element; set the element of "${type}" in transactionDataElements`;
  }
  return isBound === false ? 'transaction data requires holder binding, which this query disables' : undefined;
}

/** OpenID4VP 1.0 appendix B.3.3.1: a key binding uses one algorithm for all hashes, by default SHA-256. */
function findAlgorithmProblems(entries: readonly Entry[], { id, format }: CredentialQuery): Fault[] {
  if (format !== 'dc+sd-jwt') return [];
  let common: readonly string[] | undefined;
  for (const [index, entry] of entries.entries()) {
    if (!entry.credential_ids.includes(id)) continue;
    const offered = entry.transaction_data_hashes_alg ?? ['sha-256'];
    common = common === undefined ? offered : common.filter((algorithm) => offered.includes(algorithm));
    if (common.length === 0) {
      const message = `"${id}" confirms all its entries by one algorithm, by default sha-256; they have none in common`;
      return [{ path: [index, 'transaction_data_hashes_alg'], message }];
    }
  }
  return [];
}
