import type { ConfirmingElement, ExpectedTransactionData } from '../formats/mdoc/transaction-data.ts';
import type { JsonObject } from '../shared/json.ts';
import { type ScaSchemas, scaSchemaOf } from './sca/payload.ts';

/** The transaction data of a request as it was stored. */
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
  /** Whether no other credential may confirm it. */
  readonly required: boolean;
};

/** OpenID4VP 1.0 section 8.4: an entry that names several credentials is confirmed by any one of them. */
function entriesOf(request: RequestedTransactionData, queryId: string): readonly Entry[] {
  return (request.transactionData ?? []).flatMap((text, position) => {
    const object = request.transactionDataObjects?.[position] ?? {};
    const { credential_ids: ids } = object;
    return Array.isArray(ids) && ids.includes(queryId) ? [{ text, object, required: new Set(ids).size === 1 }] : [];
  });
}

/** What a key binding JWT of this query has to confirm, and what it may. */
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

/** What the device that holds an mdoc of this query has to confirm, and where. */
export function deviceTransactionData(request: RequestedTransactionData, queryId: string): readonly ExpectedTransactionData[] {
  const elements = request.transactionDataElements ?? {};
  return entriesOf(request, queryId).map(({ text, object, required }) => {
    const { type, transaction_data_hashes_alg: algorithms } = object;
    const known = typeof type === 'string' && Object.hasOwn(elements, type) ? elements[type] : undefined;
    // Configurations without the element are refused; this one would be confirmed by nothing.
    const place = known ?? { namespace: '', element: '' };
    return { ...place, text, required, algorithms: Array.isArray(algorithms) ? algorithms.map(String) : [] };
  });
}
