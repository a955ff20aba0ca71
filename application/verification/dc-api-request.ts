import { defined } from '../../domain/shared/defined.ts';
import { invalidInput } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { ISO_MDOC_PROTOCOL } from '../../domain/verification/iso-mdoc/request.ts';
import { REQUEST_OBJECT_TYPE } from '../../domain/verification/request-object.ts';
import type { DcApiVerification } from '../../domain/verification/verification-request.ts';
import { signJwt } from '../keys/sign-jwt.ts';
import type { RequestSigner } from './access-chain.ts';
import { createIsoMdocRequest } from './iso-mdoc-request.ts';
import { originsOf } from './presentation-request.ts';
import {
  type CreatedRequest,
  claimsOf,
  infoOf,
  partsOf,
  type RequestContext,
  type RequestPorts,
  signerOf,
  signRequest,
} from './request-creation.ts';

/** Creates a request for the Digital Credentials API (OpenID4VP 1.0 appendix A). */
export async function createDcApiRequest(ports: RequestPorts, context: RequestContext): Promise<CreatedRequest> {
  const { configuration, body, publicId, address } = context;
  const origins = originsOf(configuration, body.origin, ports.settings.publicUrl);
  const responseMode = configuration.responseMode === 'direct_post.jwt' ? 'dc_api.jwt' : 'dc_api';
  const signers = await signersOf(ports, context);
  const [signer] = signers;
  const { common, parameters } = partsOf(ports, context, `${address}/dc-api/${publicId}`, responseMode);
  // Configurations of earlier versions lack the property.
  const { dcApiProtocols = ['openid4vp'] }: Partial<typeof configuration> = configuration;
  const base = parameters(signers.length > 1 ? [] : await infoOf(ports, context, signer));
  const openId4Vp = dcApiProtocols.includes('openid4vp')
    ? await openId4VpRequest(ports, context, { signers, parameters: base, origins })
    : {};
  const isoMdoc = dcApiProtocols.includes(ISO_MDOC_PROTOCOL)
    ? await createIsoMdocRequest(ports, configuration, signer?.chain, origins)
    : undefined;
  const clientId = signers.length > 1 ? undefined : signer?.clientId;
  const request = { ...common, origins, ...openId4Vp, ...defined({ clientId, isoMdoc }) };
  return { request, parameters: base };
}

/** The signers: none, the access key, or several. */
async function signersOf(ports: RequestPorts, context: RequestContext): Promise<readonly RequestSigner[]> {
  const { dcApiRequest: kind, furtherAccessKeyChainIds } = context.configuration;
  if (kind === 'unsigned') return [];
  const furtherIds = kind === 'multisigned' ? (furtherAccessKeyChainIds ?? []) : [];
  const signers = [await signerOf(ports, context)];
  for (const [index, id] of furtherIds.entries()) {
    const signer = await signerOf(ports, context, id);
    // The tenant's default signer may have become one of them.
    if (signers.some(({ clientId }) => clientId === signer.clientId)) {
      throw invalidInput(`furtherAccessKeyChainIds.${index}`, `The key chain "${id}" already signs.`);
    }
    signers.push(signer);
  }
  return signers;
}

type OpenId4VpParts = { readonly signers: readonly RequestSigner[]; readonly parameters: JsonObject; readonly origins: readonly string[] };
type OpenId4Vp = Pick<DcApiVerification, 'parameters' | 'requestObject' | 'signedAs' | 'multisigned' | 'clientIds'>;

async function openId4VpRequest(
  ports: RequestPorts,
  context: RequestContext,
  { signers, parameters, origins }: OpenId4VpParts,
): Promise<OpenId4Vp> {
  const [signer] = signers;
  if (signer === undefined) return { parameters };
  // OpenID4VP 1.0 appendix A.2: a wallet rejects the request on other pages.
  const originBound = { ...parameters, expected_origins: origins };
  if (signers.length > 1) return signedBySeveral(ports, context, signers, originBound);
  return signRequest(ports, signer, { ...originBound, client_id: signer.clientId }, context);
}

/** OpenID4VP 1.0 appendix A.3.2: the client identifier is only in the header of each signature. */
async function signedBySeveral(
  ports: RequestPorts,
  context: RequestContext,
  signers: readonly RequestSigner[],
  parameters: JsonObject,
): Promise<OpenId4Vp> {
  const payload = claimsOf(parameters, context);
  const signatures: JsonObject[] = [];
  let encoded = '';
  for (const signer of signers) {
    const info = await infoOf(ports, context, signer);
    const header = { client_id: signer.clientId, ...(info.length > 0 && { verifier_info: info }) };
    const jws = await signJwt(ports.kms, { chain: signer.chain, typ: REQUEST_OBJECT_TYPE, withKid: true, payload, header });
    const [protectedHeader = '', text = '', signature = ''] = jws.split('.');
    signatures.push({ protected: protectedHeader, signature });
    encoded = text;
  }
  const clientIds = signers.map(({ clientId, signedAs }) => signedAs ?? clientId);
  return { multisigned: { payload: encoded, signatures }, clientIds };
}
