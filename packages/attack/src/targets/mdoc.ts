import { createHash, sign } from 'node:crypto';
import { type Cbor, decodeCbor, encodeCbor, Tagged } from '../../../wallet/src/core/formats/cbor.ts';
import type { Json } from '../core/http.ts';
import { type Key, thumbprint } from '../core/jwt.ts';
import type { HeldCredential } from './held-credential.ts';
import type { FetchedRequest } from './requests.ts';

type CborMap = Map<Cbor, Cbor>;
export type Items = Map<string, readonly Tagged[]>;

export type DocumentAlteration = {
  /** Replaces values of the transcript. */
  readonly transcript?: { readonly clientId?: string; readonly nonce?: string; readonly responseUri?: string; readonly jwk?: Json };
  readonly handover?: string;
  readonly items?: (items: Items) => Items;
  /** The parts of the issuer's COSE_Sign1. */
  readonly issuerAuth?: (parts: readonly Cbor[]) => Cbor;
  readonly deviceAuth?: (signature: Cbor) => ReadonlyMap<Cbor, Cbor>;
  readonly deviceNameSpaces?: Cbor;
  readonly document?: (document: CborMap) => CborMap;
  readonly response?: (response: CborMap) => CborMap;
  readonly bytes?: (bytes: Buffer) => Buffer;
  readonly key?: Key;
  readonly protectedHeader?: ReadonlyMap<Cbor, Cbor>;
};

export const itemOf = ({ value }: Tagged): CborMap => decodeCbor(value as Uint8Array) as CborMap;
export const embedded = (value: Cbor): Tagged => new Tagged(24, encodeCbor(value));

/** A DeviceResponse for a request, base64url (OpenID4VP 1.0 appendix B.2, ISO/IEC 18013-5 section 8.3.2.1.2.2). */
export function presentDocument(
  request: Pick<FetchedRequest, 'payload'>,
  query: Json,
  held: HeldCredential,
  alteration: DocumentAlteration = {},
): string {
  const issuerSigned = decodeCbor(Buffer.from(held.text, 'base64url')) as CborMap;
  const disclosedItems = alteration.items?.(askedItems(issuerSigned, query)) ?? askedItems(issuerSigned, query);
  const issuerAuth = issuerSigned.get('issuerAuth') as readonly Cbor[];
  const nameSpaces = embedded(alteration.deviceNameSpaces ?? new Map());
  const signature = deviceSignature(request, held, nameSpaces, alteration);
  const document: CborMap = new Map<Cbor, Cbor>([
    ['docType', held.type],
    [
      'issuerSigned',
      new Map<Cbor, Cbor>([
        ['nameSpaces', disclosedItems as ReadonlyMap<Cbor, Cbor>],
        ['issuerAuth', alteration.issuerAuth?.(issuerAuth) ?? issuerAuth],
      ]),
    ],
    [
      'deviceSigned',
      new Map<Cbor, Cbor>([
        ['nameSpaces', nameSpaces],
        ['deviceAuth', alteration.deviceAuth?.(signature) ?? new Map<Cbor, Cbor>([['deviceSignature', signature]])],
      ]),
    ],
  ]);
  const response: CborMap = new Map<Cbor, Cbor>([
    ['version', '1.0'],
    ['documents', [alteration.document?.(document) ?? document]],
    ['status', 0],
  ]);
  const bytes = Buffer.from(encodeCbor(alteration.response?.(response) ?? response));
  return (alteration.bytes?.(bytes) ?? bytes).toString('base64url');
}

function askedItems(issuerSigned: CborMap, query: Json): Items {
  const requestedPaths = new Set((query.claims ?? []).map(({ path }: Json) => JSON.stringify(path.slice(0, 2))));
  const itemsByNamespace = issuerSigned.get('nameSpaces') as Map<string, readonly Tagged[]>;
  const requestedItems = [...itemsByNamespace].map(([space, items]): [string, readonly Tagged[]] => [
    space,
    items.filter((item) => requestedPaths.has(JSON.stringify([space, itemOf(item).get('elementIdentifier')]))),
  ]);
  return new Map(requestedItems.filter(([, items]) => items.length > 0));
}

/** ISO/IEC 18013-5 section 9.1.3.6. */
function deviceSignature(
  { payload }: Pick<FetchedRequest, 'payload'>,
  held: HeldCredential,
  nameSpaces: Tagged,
  alteration: DocumentAlteration,
): Cbor {
  const head = encodeCbor(alteration.protectedHeader ?? new Map([[1, -7]]));
  const authentication = embedded(['DeviceAuthentication', transcriptOf(payload, alteration), held.type, nameSpaces]);
  const toSign = encodeCbor(['Signature1', head, Buffer.alloc(0), encodeCbor(authentication)]);
  const { privateKey } = alteration.key ?? held.key;
  return [head, new Map(), null, sign('sha256', toSign, { key: privateKey, dsaEncoding: 'ieee-p1363' })];
}

function transcriptOf(payload: Json, { transcript = {}, handover = 'OpenID4VPHandover' }: DocumentAlteration): Cbor {
  const encrypted = String(payload.response_mode).endsWith('.jwt');
  const jwk = 'jwk' in transcript ? transcript.jwk : encrypted ? payload.client_metadata?.jwks?.keys?.[0] : undefined;
  const info = encodeCbor([
    transcript.clientId ?? payload.client_id,
    transcript.nonce ?? payload.nonce,
    jwk === undefined ? null : Buffer.from(thumbprint(jwk), 'base64url'),
    transcript.responseUri ?? payload.response_uri,
  ]);
  return [null, null, [handover, createHash('sha256').update(info).digest()]];
}
