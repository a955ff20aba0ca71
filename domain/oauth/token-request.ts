import { Failure } from '../shared/failure.ts';
import { isJsonObject, parseJson } from '../shared/json.ts';

export const PRE_AUTHORIZED_CODE_GRANT = 'urn:ietf:params:oauth:grant-type:pre-authorized_code';

export type PreAuthorizedCodeRequest = {
  readonly code: string;
  readonly txCode: string | undefined;
  /** Configuration ids that the wallet narrowed its request to; undefined when it sent no details. */
  readonly wanted: readonly string[] | undefined;
};

/**
 * Reads a token request (OpenID4VCI 1.0 section 6.1). Unknown parameters are ignored.
 * @throws Failure `invalid_request`, `unsupported_grant_type`, `invalid_authorization_details`.
 */
export function readTokenRequest(form: Readonly<Record<string, string>>): PreAuthorizedCodeRequest {
  const grantType = form['grant_type'];
  if (grantType === undefined) throw new Failure('invalid_request', 'grant_type is missing');
  if (grantType !== PRE_AUTHORIZED_CODE_GRANT) {
    // OpenID4VCI 1.0 section 6.1: a transaction code belongs to this grant only.
    if (form['tx_code'] !== undefined)
      throw new Failure('invalid_request', 'tx_code does not belong to this grant');
    throw new Failure('unsupported_grant_type', 'this server supports the pre-authorized code grant');
  }
  const code = form['pre-authorized_code'];
  if (code === undefined) throw new Failure('invalid_request', 'pre-authorized_code is missing');
  return { code, txCode: form['tx_code'], wanted: readDetails(form['authorization_details']) };
}

/** RFC 9396 section 2, OpenID4VCI 1.0 section 5.1.1. */
function readDetails(text: string | undefined): readonly string[] | undefined {
  if (text === undefined) return undefined;
  const refused = (message: string) => new Failure('invalid_authorization_details', message);
  const details = parseJson(text);
  if (!Array.isArray(details) || details.length === 0)
    throw refused('authorization_details must be an array of objects');
  return details.map((entry) => {
    if (!isJsonObject(entry) || entry['type'] !== 'openid_credential')
      throw refused('only the type openid_credential is known');
    const id = entry['credential_configuration_id'];
    if (typeof id !== 'string') throw refused('credential_configuration_id is missing');
    return id;
  });
}

/** @throws Failure `invalid_authorization_details` when the wallet wants more than the code is for (RFC 9396 section 6). */
export function narrow(granted: readonly string[], wanted: readonly string[] | undefined): readonly string[] {
  if (wanted === undefined) return granted;
  if (!wanted.every((id) => granted.includes(id))) {
    throw new Failure(
      'invalid_authorization_details',
      'the code does not cover a requested credential configuration',
    );
  }
  return [...new Set(wanted)];
}
