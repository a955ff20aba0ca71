import type { Cbor, EncodedCbor } from '../../domain/formats/cbor/values.ts';
import { isoMdocTranscript } from '../../domain/formats/mdoc/session-transcript.ts';
import { type KeyChain, signingChain } from '../../domain/keys/key-chain.ts';
import { signingKey } from '../../domain/keys/signing-key.ts';
import { invalidInput } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { PresentationConfiguration } from '../../domain/verification/configuration.ts';
import { isoMdocQueries } from '../../domain/verification/iso-mdoc/query.ts';
import { deviceRequest, docRequest, encryptionInfo, itemsRequest, readerToSign } from '../../domain/verification/iso-mdoc/request.ts';
import type { IsoMdocRequest } from '../../domain/verification/verification-request.ts';
import type { Kms } from '../ports/kms.ts';
import type { RequestPorts } from './request-creation.ts';

/** ISO/IEC TS 18013-7 section C.2 requires at least 16 bytes. */
const NONCE_BYTES = 32;

/**
 * The request of ISO/IEC TS 18013-7 Annex C for the query of a configuration.
 * @param chain that signs as the reader (ISO/IEC 18013-5 section 9.1.4); undefined for an unsigned request.
 * @throws Failure `invalid_input` when there is more than one possible origin.
 */
export async function createIsoMdocRequest(
  { random, encryption, kms }: RequestPorts,
  { dcql_query }: PresentationConfiguration,
  chain: KeyChain | undefined,
  origins: readonly string[],
): Promise<IsoMdocRequest> {
  const [origin] = origins;
  if (origin === undefined || origins.length > 1) {
    throw invalidInput('origin', 'org-iso-mdoc is for one page; set the expectedOrigin that sends the request.');
  }
  // Not the OpenID4VP key: each key is used for one encryption scheme.
  const { publicJwk, d } = encryption.generate();
  const info = encryptionInfo(random.bytes(NONCE_BYTES), publicJwk);
  const transcript = isoMdocTranscript({ encryptionInfo: info, origin });
  const { queries } = isoMdocQueries(dcql_query);
  const documents = queries.map(itemsRequest);
  const docRequests = chain === undefined ? documents.map((items) => docRequest(items)) : await signedBy(kms, chain, documents, transcript);
  return {
    deviceRequest: deviceRequest(docRequests),
    encryptionInfo: info,
    origin,
    queryIds: Object.fromEntries(queries.map(({ docType, id }) => [docType, id])),
    encryption: { publicJwk: publicJwk as unknown as JsonObject, d },
  };
}

async function signedBy(kms: Kms, chain: KeyChain, documents: readonly EncodedCbor[], transcript: Buffer): Promise<readonly Cbor[]> {
  const { key } = chain.active;
  const reader = { algorithm: key.handle.algorithm, chain: signingChain(chain) };
  const toSign = documents.map((items) => readerToSign(items, reader, transcript));
  const signatures = await kms.signMany(signingKey(chain.tenantId, key), toSign);
  return documents.map((items, index) => docRequest(items, reader, signatures[index]));
}
