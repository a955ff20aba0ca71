import { anyRefusal, bad, type Family } from '../core/case.ts';
import { newKey } from '../core/jwt.ts';
import { table } from '../core/table.ts';
import type { Issuer } from '../targets/issuer.ts';
import { PRE_AUTHORIZED } from '../targets/offers.ts';
import { obtainToken } from './common.ts';

const form = 'application/x-www-form-urlencoded';
const grant = (fields: Record<string, string>) => (issuer: Issuer) => issuer.tokenRequest({ ...issuer.clientFields(), ...fields });
/** The unchanged body, with a correct proof. */
const raw =
  (body: (code: string) => string, type = form) =>
  async (issuer: Issuer) => {
    const { preCode } = await issuer.source('pre').next();
    const url = issuer.endpoint('token_endpoint');
    const send = (proof: Record<string, string | readonly string[]>) =>
      issuer.http.call(url, { method: 'POST', headers: { 'Content-Type': type, ...proof }, body: body(preCode) });
    return issuer.bound(url, send, { key: newKey() });
  };
const redemption = (code: string) => `grant_type=${encodeURIComponent(PRE_AUTHORIZED)}&pre-authorized_code=${encodeURIComponent(code)}`;

export const tokenRequests: Family<Issuer> = {
  id: 'token-requests',
  title: 'Forms and grants of the token endpoint',
  control: obtainToken,
  cases: [
    ...table<Issuer>(
      {
        section: 'RFC 6749 section 5.2',
        why: 'grants that nobody offered give no token',
        safe: { status: [400, 401], error: ['unsupported_grant_type', 'invalid_request', 'unauthorized_client', 'invalid_client'] },
      },
      {
        'the password grant': grant({ grant_type: 'password', username: 'admin', password: 'admin' }),
        'the client credentials grant': grant({ grant_type: 'client_credentials' }),
        'token exchange': grant({ grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange', subject_token: 'x' }),
        'an assertion that nobody signed': grant({ grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion: 'e30.e30.' }),
        'an unknown grant': grant({ grant_type: 'unknown' }),
        'a grant with capitals': grant({ grant_type: PRE_AUTHORIZED.toUpperCase(), 'pre-authorized_code': 'x' }),
      },
    ),
    ...table<Issuer>(
      { section: 'RFC 6749 section 3.2', why: 'what can be read in two ways is refused', safe: bad('invalid_request') },
      {
        'no grant_type': grant({ code: 'x' }),
        'grant_type twice': raw((code) => `${redemption(code)}&grant_type=authorization_code`),
        'grant_type twice, the right one last': raw((code) => `grant_type=authorization_code&${redemption(code)}`),
        'a bad code and a good one': raw((code) => `pre-authorized_code=x&${redemption(code)}`),
        'a good code and a bad one': raw((code) => `${redemption(code)}&pre-authorized_code=x`),
      },
    ),
    ...table<Issuer>(
      {
        section: 'RFC 6749 section 4.1.3',
        why: 'the endpoint reads forms and nothing else',
        safe: { status: [400, 415], error: ['invalid_request'] },
      },
      {
        'a JSON body': raw((code) => JSON.stringify({ grant_type: PRE_AUTHORIZED, 'pre-authorized_code': code }), 'application/json'),
        'the form as text': raw(redemption, 'text/plain'),
        'the form without a type': raw(redemption, ''),
        'a multipart type': raw(redemption, 'multipart/form-data; boundary=x'),
      },
    ),
    ...table<Issuer>(
      { section: 'RFC 6749 section 3.2', why: 'a code in an address stands in logs', safe: anyRefusal },
      {
        'GET with the form as a query': async (issuer) => {
          const { preCode } = await issuer.source('pre').next();
          return issuer.http.call(`${issuer.endpoint('token_endpoint')}?${redemption(preCode)}`);
        },
        'POST with the form as a query': async (issuer) => {
          const { preCode } = await issuer.source('pre').next();
          const url = `${issuer.endpoint('token_endpoint')}?${redemption(preCode)}`;
          return issuer.http.form(url, {});
        },
      },
    ),
    ...table<Issuer>(
      { section: 'RFC 9110 section 15.5', why: 'a body has a limit and a form', safe: { status: [0, 400, 413, 415] } },
      {
        'a form of a megabyte': raw((code) => `${redemption(code)}&x=${'x'.repeat(1024 * 1024)}`),
        'a form of ten thousand members': raw(
          (code) => `${redemption(code)}&${Array.from({ length: 10_000 }, (_, i) => `p${i}=1`).join('&')}`,
        ),
        'percent signs that mean nothing': raw(() => 'grant_type=%zz%&pre-authorized_code=%'),
        'bytes that are no UTF-8': raw(() => 'grant_type=%ff%fe&pre-authorized_code=%c3%28'),
      },
    ),
  ],
};
