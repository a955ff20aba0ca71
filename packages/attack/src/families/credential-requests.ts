import type { Family, Safe } from '../core/case.ts';
import type { Json } from '../core/http.ts';
import { keyProof, newKey } from '../core/jwt.ts';
import { Skip } from '../core/skip.ts';
import { table } from '../core/table.ts';
import type { Issuer } from '../targets/issuer.ts';
import { issueCredential } from './common.ts';

const withBody = (change: (body: Json, issuer: Issuer) => Json) => async (issuer: Issuer) => {
  const grant = await issuer.token();
  return issuer.credential(grant, change(await issuer.goodBody(grant), issuer));
};
/** The text of a correct body. */
const text =
  (make: (body: Json) => string, type = 'application/json') =>
  async (issuer: Issuer) => {
    const grant = await issuer.token();
    const body = make({ ...(await issuer.goodBody(grant)), ...issuer.answerKey() });
    if (type === 'application/json') return issuer.credential(grant, body);
    return issuer.resource(issuer.endpoint('credential_endpoint'), grant, body, { type });
  };
const SHAPE: Safe = {
  status: [400, 403, 413, 415],
  error: [
    'invalid_credential_request',
    'unknown_credential_configuration',
    'unknown_credential_identifier',
    'insufficient_scope',
    'invalid_proof',
    'invalid_encryption_parameters',
    'invalid_request',
  ],
};

export const credentialRequests: Family<Issuer> = {
  id: 'credential-requests',
  title: 'What is asked for at the credential endpoint',
  control: issueCredential,
  cases: [
    ...table<Issuer>(
      { section: 'OpenID4VCI 1.0 section 8.2', why: 'one request names one credential in one way', safe: SHAPE },
      {
        'no name of a credential': withBody(({ proofs }) => ({ proofs })),
        'two names of a credential': withBody((body) => ({ ...body, credential_configuration_id: 'a', credential_identifier: 'b' })),
        'a configuration that there is not': withBody(({ proofs }) => ({ proofs, credential_configuration_id: 'unknown' })),
        'an identifier that was never given': withBody(({ proofs }) => ({ proofs, credential_identifier: 'unknown' })),
        'a name that is a number': withBody(({ proofs }) => ({ proofs, credential_configuration_id: 1 })),
        'a name that every object has': withBody(({ proofs }) => ({ proofs, credential_configuration_id: '__proto__' })),
        'a name with a NUL': withBody(({ proofs }) => ({ proofs, credential_configuration_id: 'a\0b' })),
        'one proof as in old drafts': withBody(({ proofs, ...body }) => ({ ...body, proof: { proof_type: 'jwt', jwt: proofs.jwt[0] } })),
      },
    ),
    {
      name: 'a credential that the token is not for',
      section: 'OpenID4VCI 1.0 section 8.3.1.1',
      why: 'an offer of one credential is not an offer of all',
      safe: { status: SHAPE.status, error: [...(SHAPE.error ?? []), 'credential_request_denied'] },
      async run(issuer) {
        const grant = await issuer.token();
        const otherIds = Object.keys(issuer.metadata.credential_configurations_supported ?? {}).filter(
          (id) => !grant.offer.ids.includes(id),
        );
        const [otherId] = otherIds;
        if (otherId === undefined) throw new Skip('the issuer has one credential alone');
        const { proofs } = await issuer.goodBody(grant);
        return issuer.credential(grant, { proofs, credential_configuration_id: otherId });
      },
    },
    {
      name: 'more keys than a batch has',
      section: 'OpenID4VCI 1.0 section 12.2.4',
      why: 'a batch has the size that is published',
      safe: SHAPE,
      async run(issuer) {
        const size = issuer.metadata.batch_credential_issuance?.batch_size ?? 1;
        const grant = await issuer.token();
        const nonce = await issuer.nonce();
        const jwt = Array.from({ length: size + 1 }, () => keyProof(newKey(), issuer.id, nonce));
        return issuer.credential(grant, { ...issuer.subject(grant), proofs: { jwt } });
      },
    },
    ...table<Issuer>(
      { section: 'RFC 8259', why: 'a body that is read in two ways is refused', safe: { status: [0, 400, 413, 415] } },
      {
        'a body that is no JSON': text(() => '{'),
        'a body that is a list': text((body) => JSON.stringify([body])),
        'a body that is a text': text(() => '"x"'),
        'a member twice': text((body) => JSON.stringify(body).replace('{', '{"credential_configuration_id":"other",')),
        'proofs twice': text((body) => JSON.stringify(body).replace(/}$/, ',"proofs":{"jwt":[]}}')),
        'a body with a NUL behind it': text((body) => `${JSON.stringify(body)}\0`),
        'something behind the body': text((body) => `${JSON.stringify(body)}{}`),
        'a hundred thousand levels': text((body) =>
          JSON.stringify(body).replace(/}$/, `,"x":${'['.repeat(100_000)}${']'.repeat(100_000)}}`),
        ),
        'a body of two megabytes': text((body) => JSON.stringify({ ...body, x: 'x'.repeat(2 * 1024 * 1024) })),
        'the type text/plain': text((body) => JSON.stringify(body), 'text/plain'),
        'the type of forms': text((body) => JSON.stringify(body), 'application/x-www-form-urlencoded'),
        'no body': text(() => ''),
      },
    ),
  ],
};
