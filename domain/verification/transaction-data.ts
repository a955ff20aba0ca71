import type { ConfirmingElement, ExpectedTransactionData } from '../formats/mdoc/transaction-data.ts';
import type { JsonObject } from '../shared/json.ts';
import { type ScaSchemas, scaSchemaOf } from './sca/payload.ts';

export type RequestedTransactionData = {
  /** The exact strings sent. */
  readonly transactionData?: readonly string[];
  readonly transactionDataObjects?: readonly JsonObject[];
  readonly transactionDataElements?: { readonly [type: string]: ConfirmingElement };
  readonly transactionDataSchemas?: ScaSchemas;
};

type Entry = {
  readonly text: string;
  readonly object: JsonObject;
  /** True if no other credential may confirm the entry. */
  readonly required: boolean;
};

/** OpenID4VP 1.0 section 8.4: any one of the named credentials confirms an entry. */
function entriesOf(request: RequestedTransactionData, queryId: string): readonly Entry[] {
  return (request.transactionData ?? []).flatMap((text, position) => {
    const object = request.transactionDataObjects?.[position] ?? {};
    const { credential_ids: ids } = object;
    return Array.isArray(ids) && ids.includes(queryId) ? [{ text, object, required: new Set(ids).size === 1 }] : [];
  });
}

/** The entries that a key binding JWT of this query must confirm, and those that it may. */
export function keyBoundTransactionData(request: RequestedTransactionData, queryId: string) {
  const entries = entriesOf(request, queryId);
  const textsOf = (required: boolean) => entries.filter((entry) => entry.required === required).map(({ text }) => text);
  const authenticated = entries.filter(
    ({ object: { type } }) => typeof type === 'string' && scaSchemaOf(type, request.transactionDataSchemas ?? {}) !== undefined,
  );
  return {
    transactionData: textsOf(true),
    alternativeTransactionData: textsOf(false),
    authenticatedTransactionData: authenticated.map(({ text }) => text),
  };
}

/** The entries that the device of an mdoc of this query must confirm, with the element of each. */
export function deviceTransactionData(request: RequestedTransactionData, queryId: string): readonly ExpectedTransactionData[] {
  const elements = request.transactionDataElements ?? {};
  return entriesOf(request, queryId).map(({ text, object, required }) => {
    const { type, transaction_data_hashes_alg: algorithms } = object;
    const configuredElement = typeof type === 'string' && Object.hasOwn(elements, type) ? elements[type] : undefined;
    // Configurations without the element are rejected; this empty one is never present.
    const location = configuredElement ?? { namespace: '', element: '' };
    return { ...location, text, required, algorithms: Array.isArray(algorithms) ? algorithms.map(String) : [] };
  });
}
