import { CompactEncrypt, importJWK } from 'jose';
import { jsonOfBase64 } from '../../../wallet/src/core/formats/base64.ts';
import { bad, describe, type Family, held, open, type Safe } from '../core/case.ts';
import type { Json } from '../core/http.ts';
import { newKey } from '../core/jwt.ts';
import { Skip } from '../core/skip.ts';
import { table } from '../core/table.ts';
import type { Issuer } from '../targets/issuer.ts';
import { encryptBody, newResponseKey } from '../targets/issuer-encryption.ts';
import { issueCredential } from './common.ts';

const ENCRYPTION: Safe = bad('invalid_encryption_parameters', 'invalid_credential_request');
const withEncryptionParameters = (alteration: (parameters: Json) => Json) => async (issuer: Issuer) => {
  if (issuer.metadata.credential_response_encryption === undefined) throw new Skip('answers of this issuer are not encrypted');
  const grant = await issuer.token();
  const body = {
    ...(await issuer.goodBody(grant)),
    credential_response_encryption: alteration(newResponseKey(issuer.metadata).parameters),
  };
  const url = issuer.endpoint('credential_endpoint');
  if (issuer.metadata.credential_request_encryption === undefined) return issuer.resource(url, grant, body);
  return issuer.resource(url, grant, await encryptBody(issuer.metadata, body), { type: 'application/jwt' });
};
const jwe = (make: (issuer: Issuer, body: Json) => Promise<string>) => async (issuer: Issuer) => {
  const grant = await issuer.token();
  const content = await make(issuer, { ...(await issuer.goodBody(grant)), ...issuer.answerKey() });
  return issuer.resource(issuer.endpoint('credential_endpoint'), grant, content, { type: 'application/jwt' });
};

export const encryption: Family<Issuer> = {
  id: 'encryption',
  title: 'Encrypted credential requests and answers',
  async control(issuer) {
    const { credential_request_encryption: request, credential_response_encryption: response } = issuer.metadata;
    if (request === undefined && response === undefined) throw new Skip('this issuer encrypts nothing');
    await issueCredential(issuer);
    if (request === undefined) return;
    const { status } = await jwe((_, body) => encryptBody(issuer.metadata, body))(issuer);
    if (status >= 300) throw new Error(`an encrypted request that is right: ${status}`);
  },
  cases: [
    ...table<Issuer>(
      { section: 'OpenID4VCI 1.0 section 8.2', why: 'an answer is encrypted as was offered, or not given', safe: ENCRYPTION },
      {
        'an enc that was not offered': withEncryptionParameters((parameters) => ({ ...parameters, enc: 'A192CBC-HS384' })),
        'an answer key that is private': withEncryptionParameters((parameters) => ({
          ...parameters,
          jwk: { ...parameters.jwk, d: 'AAAA' },
        })),
        'an answer key without alg': withEncryptionParameters((parameters) => ({
          ...parameters,
          jwk: { ...parameters.jwk, alg: undefined },
        })),
        'an alg that was not offered': withEncryptionParameters((parameters) => ({
          ...parameters,
          jwk: { ...parameters.jwk, alg: 'RSA1_5' },
        })),
        'no answer key': withEncryptionParameters(({ enc }) => ({ enc })),
        'an answer key that is not on the curve': withEncryptionParameters((parameters) => ({
          ...parameters,
          jwk: { ...parameters.jwk, y: parameters.jwk.x },
        })),
        'a symmetric answer key': withEncryptionParameters((parameters) => ({
          ...parameters,
          jwk: { kty: 'oct', k: 'AAAA', alg: 'dir', kid: 'x' },
        })),
        'a compression that was not offered': withEncryptionParameters((parameters) => ({ ...parameters, zip: 'unknown' })),
      },
    ),
    ...table<Issuer>(
      {
        section: 'OpenID4VCI 1.0 section 10',
        why: 'what does not decrypt was never said',
        safe: { status: [400, 413, 415], error: ['invalid_encryption_parameters', 'invalid_credential_request'] },
      },
      {
        'a request to a key that is unknown': jwe((issuer, body) => encryptBody(issuer.metadata, body, { kid: 'unknown' })),
        'a request to another key': jwe(async (issuer, body) => {
          const { kid, alg = 'ECDH-ES' } = issuer.metadata.credential_request_encryption?.jwks?.keys?.[0] ?? {};
          if (kid === undefined) throw new Skip('the metadata has no key for encrypted requests');
          return new CompactEncrypt(Buffer.from(JSON.stringify(body)))
            .setProtectedHeader({ alg, enc: 'A256GCM', kid })
            .encrypt(await importJWK(newKey().jwk, alg));
        }),
        'a request with a changed ciphertext': jwe(async (issuer, body) => {
          const parts = (await encryptBody(issuer.metadata, body)).split('.');
          const bytes = Buffer.from(parts[3] ?? '', 'base64url');
          bytes[0] = (bytes[0] ?? 0) ^ 1;
          return [...parts.slice(0, 3), bytes.toString('base64url'), parts[4]].join('.');
        }),
        'a request that is no JSON inside': jwe((issuer) => encryptBody(issuer.metadata, 'nonsense')),
        'an extension that nobody knows': jwe(async (issuer, body) => {
          const parts = (await encryptBody(issuer.metadata, body)).split('.');
          const head = jsonOfBase64(parts[0] ?? '') as object;
          return [Buffer.from(JSON.stringify({ ...head, crit: ['unknown'], unknown: 1 })).toString('base64url'), ...parts.slice(1)].join(
            '.',
          );
        }),
        'a request that is only signed': jwe(async (issuer, body) => {
          await encryptBody(issuer.metadata, body);
          return `eyJhbGciOiJub25lIn0.${Buffer.from(JSON.stringify(body)).toString('base64url')}.`;
        }),
        'text that is no JWE': jwe(async () => 'a.b.c.d.e'),
      },
    ),
    {
      name: 'a request in the clear where encryption is demanded',
      section: 'OpenID4VCI 1.0 section 10',
      why: 'a proxy between must not be able to turn encryption off',
      safe: ENCRYPTION,
      async run(issuer) {
        if (issuer.metadata.credential_request_encryption?.encryption_required !== true) throw new Skip('encryption is not demanded');
        const grant = await issuer.token();
        return issuer.resource(issuer.endpoint('credential_endpoint'), grant, await issuer.goodBody(grant));
      },
    },
    {
      name: 'an answer in the clear where encryption was asked for',
      section: 'OpenID4VCI 1.0 section 8.3',
      why: 'who asks for encryption gets nothing readable',
      safe: { status: [200] },
      async run(issuer) {
        const answer = await withEncryptionParameters((parameters) => parameters)(issuer);
        if (answer.status !== 200) return held(describe(answer));
        return answer.json.credentials === undefined ? held('encrypted') : open('the credential is readable');
      },
    },
  ],
};
