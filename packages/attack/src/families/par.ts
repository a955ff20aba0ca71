import { anyRefusal, bad, denied, type Family, NoControl } from '../core/case.ts';
import { newKey, sha256 } from '../core/jwt.ts';
import { asAdvice, table } from '../core/table.ts';
import { type Issuer, VERIFIER } from '../targets/issuer.ts';

const push = (change: Record<string, string | undefined>) => async (issuer: Issuer) => issuer.push(await issuer.authorization(change));
const openAuthorization =
  (change: (fields: Record<string, string | undefined>, requestUri: string, issuer: Issuer) => Record<string, string>) =>
  async (issuer: Issuer) => {
    const fields = await issuer.authorization();
    const { request_uri: requestUri } = (await issuer.push(fields)).json;
    const query = new URLSearchParams(change(fields, String(requestUri), issuer));
    return issuer.http.call(`${issuer.endpoint('authorization_endpoint')}?${query}`);
  };

export const par: Family<Issuer> = {
  id: 'par',
  title: 'Pushed authorization requests',
  async control(issuer) {
    issuer.endpoint('pushed_authorization_request_endpoint');
    const { status, json } = await issuer.push(await issuer.authorization());
    if (status !== 201) throw new NoControl(`a right pushed request: ${status} ${json.error}`);
  },
  cases: [
    ...table<Issuer>(
      {
        section: 'RFC 9126 section 2.1',
        why: 'what is pushed is a whole request of one client',
        safe: bad('invalid_request', 'unsupported_response_type', 'invalid_request_uri'),
      },
      {
        'no response_type': push({ response_type: undefined }),
        'the response type token': push({ response_type: 'token' }),
        'request_uri in a pushed request': push({ request_uri: 'urn:ietf:params:oauth:request_uri:x' }),
        'no redirect_uri': push({ redirect_uri: undefined }),
        'a redirect_uri with a fragment': push({ redirect_uri: 'https://wallet.example/cb#x' }),
        'a redirect_uri that runs as a script': push({ redirect_uri: 'javascript:alert(1)' }),
        'a redirect_uri that is data': push({ redirect_uri: 'data:text/html,x' }),
        'a redirect_uri of a file': push({ redirect_uri: 'file:///etc/passwd' }),
        'a redirect_uri with a line break': push({ redirect_uri: 'https://wallet.example/cb\r\nSet-Cookie: a=b' }),
        'a redirect_uri that is relative': push({ redirect_uri: '/callback' }),
      },
    ),
    ...table<Issuer>(
      { section: 'RFC 7636 section 4.4.1', why: 'without PKCE a stolen code is a token', safe: bad('invalid_request') },
      {
        'no code_challenge': push({ code_challenge: undefined, code_challenge_method: undefined }),
        'the method plain': push({ code_challenge: VERIFIER, code_challenge_method: 'plain' }),
        'no method, which means plain': push({ code_challenge: VERIFIER, code_challenge_method: undefined }),
        'an unknown method': push({ code_challenge_method: 'S512' }),
        'a challenge that is too short': push({ code_challenge: sha256(VERIFIER).slice(0, 42) }),
        'a challenge with characters that it cannot have': push({ code_challenge: `${'x'.repeat(42)}+` }),
      },
    ),
    ...table<Issuer>(
      {
        section: 'OpenID4VCI 1.0 section 5.1.3',
        why: 'the state of an offer is a value of a stranger',
        safe: bad('invalid_request', 'invalid_grant'),
      },
      {
        'an issuer_state that was guessed': push({ issuer_state: 'guessed' }),
        'an issuer_state with a NUL': push({ issuer_state: 'a\0b' }),
      },
    ).map(asAdvice),
    ...table<Issuer>(
      {
        section: 'RFC 9396 section 5',
        why: 'details that nobody understands grant nothing',
        safe: bad('invalid_authorization_details', 'invalid_request'),
      },
      {
        'details that are no JSON': push({ authorization_details: '[{', scope: undefined }),
        'details that are no list': push({ authorization_details: '{}', scope: undefined }),
        'details of an unknown type': push({ authorization_details: '[{"type":"unknown"}]', scope: undefined }),
        'details for a credential that there is not': push({
          authorization_details: '[{"type":"openid_credential","credential_configuration_id":"unknown"}]',
          scope: undefined,
        }),
        'details for another issuer': async (issuer) => {
          const { ids } = issuer.source('code');
          const detail = { type: 'openid_credential', credential_configuration_id: ids[0], locations: ['https://other.example'] };
          return push({ authorization_details: JSON.stringify([detail]), scope: undefined })(issuer);
        },
      },
    ),
    ...table<Issuer>(
      { section: 'RFC 6749 section 3.1', why: 'what can be read in two ways is refused', safe: bad('invalid_request') },
      {
        'client_id twice': async (issuer) => {
          const pairs = Object.entries(await issuer.authorization()).filter((pair): pair is [string, string] => pair[1] !== undefined);
          return issuer.push([...pairs, ['client_id', 'https://other.example']]);
        },
        'redirect_uri twice': async (issuer) => {
          const pairs = Object.entries(await issuer.authorization()).filter((pair): pair is [string, string] => pair[1] !== undefined);
          return issuer.push([...pairs, ['redirect_uri', 'https://other.example/cb']]);
        },
      },
    ),
    asAdvice({
      name: 'a scope that nobody knows, alone',
      section: 'RFC 6749 section 4.1.2.1',
      why: 'nothing that can be granted is asked for',
      safe: bad('invalid_scope', 'invalid_request'),
      run: push({ scope: 'unknown-to-everybody', authorization_details: undefined }),
    }),
    {
      name: 'a DPoP proof of another key than dpop_jkt names',
      section: 'RFC 9449 section 10.1',
      why: 'the code is bound to one key, and to which has to be clear',
      safe: denied('invalid_dpop_proof', 'invalid_request'),
      run: async (issuer) => issuer.push(await issuer.authorization({ dpop_jkt: sha256('another key') }), { key: newKey() }),
    },
    {
      name: 'GET to the endpoint',
      section: 'RFC 9126 section 2.3',
      why: 'requests are pushed by POST',
      safe: { status: [404, 405] },
      run: (issuer) => issuer.http.call(issuer.endpoint('pushed_authorization_request_endpoint')),
    },
    ...table<Issuer>(
      { section: 'RFC 9126 section 4', why: 'a request belongs to the client that pushed it', safe: anyRefusal },
      {
        'the request of another client': openAuthorization((_, requestUri) => ({
          client_id: 'https://other.example',
          request_uri: requestUri,
        })),
        'a request without its client': openAuthorization((_, requestUri) => ({ request_uri: requestUri })),
        'a request that was guessed': openAuthorization((fields) => ({
          client_id: String(fields['client_id']),
          request_uri: 'urn:ietf:params:oauth:request_uri:guessed',
        })),
        'a request that goes on to be approved after its code was given': async (issuer) => {
          const { url } = await issuer.code();
          return issuer.http.call(url);
        },
      },
    ),
  ],
};
