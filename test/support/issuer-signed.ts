import { decodeCbor } from '../../domain/formats/cbor/decode.ts';
import { encodeCbor } from '../../domain/formats/cbor/encode.ts';
import type { CborMap } from '../../domain/formats/cbor/values.ts';
import { readX5chain } from '../../domain/formats/cose/sign1.ts';
import { checkItems, type JsonNameSpaces } from '../../domain/formats/mdoc/items.ts';
import { type MobileSecurityObject, readMso } from '../../domain/formats/mdoc/mso.ts';
import { type OpenedMdoc, openDeviceResponse } from '../../domain/formats/mdoc/open.ts';

export type IssuerSigned = {
  readonly opened: OpenedMdoc;
  readonly mso: MobileSecurityObject;
  readonly elements: JsonNameSpaces;
  /** DER in standard base64, leaf first. */
  readonly chain: readonly string[];
};

/** An mdoc as it was issued, read by what reads presentations. Its digests are checked, its signature is not. */
export function readIssuerSigned(credential: string, docType: string): IssuerSigned {
  const issuerSigned = decodeCbor(Buffer.from(credential, 'base64url')) as CborMap;
  const response = { version: '1.0', documents: [{ docType, issuerSigned }], status: 0 };
  const opened = openDeviceResponse(encodeCbor(response).toString('base64url'));
  const mso = readMso(opened.issuerAuth.payload ?? Buffer.alloc(0));
  return {
    opened,
    mso,
    elements: checkItems(opened.items, mso),
    chain: readX5chain(opened.issuerAuth.unprotectedHeader) ?? [],
  };
}
