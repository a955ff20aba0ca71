import { defined } from '../../domain/shared/defined.ts';
import { invalidInput } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { ISO_MDOC_PROTOCOL } from '../../domain/verification/iso-mdoc/request.ts';
import { REQUEST_OBJECT_TYPE } from '../../domain/verification/request-object.ts';
import type { DcApiVerification } from '../../domain/verification/verification-request.ts';
import { signJwt } from '../keys/sign-jwt.ts';
import type { RequestSigner } from './access-chain.ts';
import { askIsoMdoc } from './ask-iso-mdoc.ts';
import { originsOf } from './presentation-request.ts';
import { claimsOf, infoOf, type Made, type Making, type MakingPorts, partsOf, signed, signerOf } from './request-in-making.ts';

/** A page hands the request to its browser, and the answer to us (OpenID4VP 1.0 appendix A). */
export async function dcApiRequest(ports: MakingPorts, making: Making): Promise<Made> {
  const { configuration, body, publicId, address } = making;
  const origins = originsOf(configuration, body.origin, ports.settings.publicUrl);
  const responseMode = configuration.responseMode === 'direct_post.jwt' ? 'dc_api.jwt' : 'dc_api';
  const signers = await signersOf(ports, making);
  const [signer] = signers;
  const { common, parameters } = partsOf(ports, making, `${address}/dc-api/${publicId}`, responseMode);
  // Configurations of earlier releases name none.
  const { dcApiProtocols = ['openid4vp'] }: Partial<typeof configuration> = configuration;
  const base = parameters(signers.length > 1 ? [] : await infoOf(ports, making, signer));
  const openId4Vp = dcApiProtocols.includes('openid4vp')
    ? await openId4VpRequest(ports, making, { signers, parameters: base, origins })
    : {};
  const isoMdoc = dcApiProtocols.includes(ISO_MDOC_PROTOCOL) ? await askIsoMdoc(ports, configuration, signer?.chain, origins) : undefined;
  const clientId = signers.length > 1 ? undefined : signer?.clientId;
  const request = { ...common, origins, ...openId4Vp, ...defined({ clientId, isoMdoc }) };
  return { request, parameters: base };
}

/** Who signs: nobody, the access key, or several. */
async function signersOf(ports: MakingPorts, making: Making): Promise<readonly RequestSigner[]> {
  const { dcApiRequest: kind, furtherAccessKeyChainIds } = making.configuration;
  if (kind === 'unsigned') return [];
  const further = kind === 'multisigned' ? (furtherAccessKeyChainIds ?? []) : [];
  const signers = [await signerOf(ports, making)];
  for (const [index, id] of further.entries()) {
    const signer = await signerOf(ports, making, id);
    // The default of the tenant may have become one of them.
    if (signers.some(({ clientId }) => clientId === signer.clientId)) {
      throw invalidInput(`furtherAccessKeyChainIds.${index}`, `The key chain "${id}" signs already.`);
    }
    signers.push(signer);
  }
  return signers;
}

type Asked = { readonly signers: readonly RequestSigner[]; readonly parameters: JsonObject; readonly origins: readonly string[] };
type OpenId4Vp = Pick<DcApiVerification, 'parameters' | 'requestObject' | 'signedAs' | 'multisigned' | 'clientIds'>;

async function openId4VpRequest(ports: MakingPorts, making: Making, { signers, parameters, origins }: Asked): Promise<OpenId4Vp> {
  const [signer] = signers;
  if (signer === undefined) return { parameters };
  // OpenID4VP 1.0 appendix A.2: a wallet refuses the request on other pages.
  const bound = { ...parameters, expected_origins: origins };
  if (signers.length > 1) return signedBySeveral(ports, making, signers, bound);
  return signed(ports, signer, { ...bound, client_id: signer.clientId }, making);
}

/** OpenID4VP 1.0 appendix A.3.2: who asks stands in the header of each signature, and nowhere else. */
async function signedBySeveral(
  ports: MakingPorts,
  making: Making,
  signers: readonly RequestSigner[],
  parameters: JsonObject,
): Promise<OpenId4Vp> {
  const payload = claimsOf(parameters, making);
  const signatures: JsonObject[] = [];
  let encoded = '';
  for (const signer of signers) {
    const info = await infoOf(ports, making, signer);
    const header = { client_id: signer.clientId, ...(info.length > 0 && { verifier_info: info }) };
    const jws = await signJwt(ports.kms, { chain: signer.chain, typ: REQUEST_OBJECT_TYPE, withKid: true, payload, header });
    const [protectedHeader = '', text = '', signature = ''] = jws.split('.');
    signatures.push({ protected: protectedHeader, signature });
    encoded = text;
  }
  const clientIds = signers.map(({ clientId, signedAs }) => signedAs ?? clientId);
  return { multisigned: { payload: encoded, signatures }, clientIds };
}
