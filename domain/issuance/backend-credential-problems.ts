import { decodeCbor } from '../formats/cbor/decode.ts';
import { parseCoseKey } from '../formats/cose/key.ts';
import { parseCoseSign1 } from '../formats/cose/sign1.ts';
import { parseMso } from '../formats/mdoc/mso.ts';
import { parseMap } from '../formats/mdoc/parse.ts';
import { parseSdJwt } from '../formats/sd-jwt/parse.ts';
import { parseHolderKey } from '../formats/sd-jwt/sd-jwt-vc.ts';
import { decodeBase64url } from '../shared/base64url.ts';
import type { Finding } from '../shared/finding.ts';
import { type PublicJwk, thumbprint } from '../shared/jwk.ts';
import { Refusal } from '../shared/refusal.ts';
import type { CredentialConfiguration } from './configuration.ts';

const CONCERNS = 'the wallet, which cannot keep or present the credential';

/**
 * Warnings about credentials that a backend issued itself. The trusted signers are unknown here, so signatures are not verified.
 * @param holderKeys that the wallet proved; empty without key binding.
 */
export function findBackendCredentialProblems(
  credentials: readonly string[],
  { config, keyBinding }: { readonly config: Pick<CredentialConfiguration['config'], 'format'>; readonly keyBinding: boolean },
  holderKeys: readonly PublicJwk[],
): Finding[] {
  const findings: Finding[] = [];
  if (credentials.length < holderKeys.length) {
    findings.push({
      rule: 'OpenID4VCI 1.0 section 8.3',
      member: 'credentials',
      concerns: 'the wallet, which requested one credential per key',
      message: `the backend returned ${credentials.length} credentials for ${holderKeys.length} keys`,
      change: 'return one for each of holderKeys',
    });
  }
  const provenKeys = new Set(holderKeys.map(thumbprint));
  const unboundKeys = new Set(provenKeys);
  for (const [index, text] of credentials.entries()) {
    const report = (message: string, change: string) =>
      findings.push({ rule: ruleOf(config), member: `credentials.${index}`, concerns: CONCERNS, message, change });
    try {
      const key = config.format === 'mso_mdoc' ? parseDeviceKey(text) : parseHolderKey(parseSdJwt(text).issuer.payload);
      const name = thumbprint(key);
      if (provenKeys.size > 0 && !provenKeys.has(name))
        report('it is bound to a key that the wallet did not prove', 'bind it to one of holderKeys');
      else if (provenKeys.size > 0 && !unboundKeys.delete(name))
        report('another credential is bound to the same key', 'bind each credential to its own key');
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (error.reason !== 'holder_key_missing')
        report(`it is not a valid ${config.format} (${error.message})`, 'provide the credentials that the wallet requested');
      else if (keyBinding) report('it is not bound to a key', 'bind it to one of holderKeys');
    }
  }
  return findings;
}

function ruleOf({ format }: Pick<CredentialConfiguration['config'], 'format'>): string {
  return format === 'mso_mdoc' ? 'OpenID4VCI 1.0 appendix A.2' : 'OpenID4VCI 1.0 appendix A.3';
}

/** Reads the device key of an IssuerSigned in base64url (OpenID4VCI 1.0 appendix A.2.4). @throws Refusal for any other text. */
function parseDeviceKey(text: string): PublicJwk {
  const bytes = decodeBase64url(text);
  if (bytes === undefined) throw new Refusal('malformed', 'not base64url');
  const issuerAuth = parseCoseSign1(parseMap(decodeCbor(bytes), 'IssuerSigned').get('issuerAuth'));
  if (issuerAuth.payload === undefined) throw new Refusal('malformed', 'issuerAuth has no payload');
  const key = parseCoseKey(parseMso(issuerAuth.payload).deviceKey);
  if (key === undefined) throw new Refusal('holder_key_missing');
  return key;
}
