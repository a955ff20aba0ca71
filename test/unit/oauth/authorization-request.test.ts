import { expect } from 'chai';
import { readAuthorizationRequest } from '../../../domain/oauth/authorization-request.ts';
import { codeOf } from '../../support/failure-code.ts';

const context = { issuer: 'https://issuer.example/acme', configurations: [{ id: 'card', scope: 'card' }] };
const valid = {
  response_type: 'code',
  client_id: 'https://wallet.example',
  redirect_uri: 'https://wallet.example/cb',
  code_challenge: '_IhBZY88woJ6oD5MlABM04Aap43i2LzsA14HBhVnfos',
  code_challenge_method: 'S256',
  scope: 'card',
};
const read = (change: Record<string, string>) => readAuthorizationRequest({ ...valid, ...change }, context);
const refusal = (change: Record<string, string>) => codeOf(() => read(change));

describe('an authorization request', () => {
  describe('may return to', () => {
    const addresses = [
      'https://wallet.example/cb?keep=b%20c&flag&x=~y',
      'https://wallet.example',
      'HTTPS://Wallet.Example:443/cb',
      'https://wallet.example:8443/cb',
      'https://xn--wllet-gra.example/cb',
      'http://127.0.0.1:4711/cb',
      'http://[::1]:4711/cb',
      'http://localhost/cb',
      'openid4vp://',
      'eudi-openid4ci://authorize',
      'com.example.wallet:/cb',
      'haip-vci://',
    ];
    for (const redirect_uri of addresses) {
      it(redirect_uri, () => expect(read({ redirect_uri }).redirectUri).to.equal(redirect_uri));
    }
  });

  describe('may not return to', () => {
    const schemes = [
      ...[
        'javascript:alert(1)//',
        'data:text/html,x',
        'vbscript:x',
        'file:///etc/passwd',
        'blob:https://x.example/1',
      ],
      ...[
        'about:blank',
        'ftp://x.example/',
        'ws://x.example/',
        'wss://x.example/',
        'jar:https://x.example/a!/b',
      ],
      ...['intent://x#Intent;end', 'intent://x', 'Intent://x', 'android-app://com.example/https/x.example'],
      ...['view-source:https://x.example', 'resource://x', 'chrome://settings', 'chrome-extension://abc/x'],
      ...[
        'moz-extension://abc/x',
        'ms-settings:privacy',
        'MS-word:ofe|u|x',
        'microsoft-edge:https://evil.example',
        'googlechrome://evil.example',
        'googlechromes://evil.example',
        'firefox://open-url?url=https://evil.example',
        'brave://open-url?url=https://evil.example',
        'opera-http://evil.example',
        'x-web-search://x',
        'shortcuts://run-shortcut?name=x',
        'slack://x',
        'zoommtg://x',
        'steam://run/1',
        'acme:/x',
        'acme.:/x',
        'acme..wallet:/x',
        'ms-msdt:/id',
        'search-ms:query=x',
      ],
      ...[
        'mailto:mallory@x.example',
        'sms:+123',
        'tel:+123',
        'content://x/y',
        'filesystem:https://x.example/t',
      ],
    ];
    const texts = [
      ...['https:evil.example', 'https:/evil.example', 'https:///evil.example', 'http:localhost/cb'],
      ...[
        'https:\\\\evil.example',
        'https://wallet.example\\@evil.example',
        'https://evil.example\\.wallet.example',
      ],
      ...[
        'https://wallet.example@evil.example/',
        'https://wallet.example:x@evil.example/',
        'https://@evil.example/',
      ],
      ...[
        'https://ev%69l.example/',
        'https://ｅvil.example/',
        'https://evil。example/',
        'http://2130706433/cb',
      ],
      ...[
        'http://0x7f.1/cb',
        'http://wallet.example/cb',
        'https://wallet.example/cb#part',
        'wallet.example/cb',
      ],
      ...['https://wallet.example/a b', ' https://wallet.example/', 'https://wallet.example/\r\nX: y'],
      ...[
        'htt\nps://wallet.example/',
        'https://wallet.example/é',
        'https://wallet.example/"',
        'com.example:/\\x',
        'com.example://wallet@evil.example/',
        'com.example://a:b@c/',
      ],
      `https://wallet.example/${'x'.repeat(2048)}`,
    ];
    for (const redirect_uri of [...schemes, ...texts]) {
      it(JSON.stringify(redirect_uri.slice(0, 60)), () =>
        expect(refusal({ redirect_uri })).to.equal('invalid_request'),
      );
    }
  });

  it('names this issuer as its resource, or none', () => {
    expect(refusal({ resource: context.issuer })).to.equal('taken');
    expect(refusal({ resource: 'https://issuer.example/other' })).to.equal('invalid_target');
  });

  it('has a state of bounded length', () => {
    expect(read({ state: 's'.repeat(1024) }).state).to.have.length(1024);
    expect(refusal({ state: 's'.repeat(1025) })).to.equal('invalid_request');
  });

  const details = (credential_configuration_id: string) =>
    JSON.stringify([{ type: 'openid_credential', credential_configuration_id }]);

  it('asks by scope or by details for what the issuer has', () => {
    const { scope: _, ...unscoped } = valid;
    const { queries, ...byDetails } = readAuthorizationRequest(
      { ...unscoped, authorization_details: details('card'), unknown: 'x' },
      context,
    );
    expect(byDetails).to.deep.equal({
      clientId: valid.client_id,
      redirectUri: valid.redirect_uri,
      codeChallenge: valid.code_challenge,
      credentialConfigurationIds: ['card'],
      byDetails: true,
    });
    expect(queries).to.deep.equal({ ...unscoped, authorization_details: JSON.parse(details('card')) });
    expect(read({ scope: 'else  card ' })).to.include({ scope: 'card', byDetails: false });
    expect(refusal({ scope: ' ' })).to.equal('invalid_scope');
    expect(refusal({ authorization_details: details('else') })).to.equal('invalid_authorization_details');
  });

  it('asks for no more than a session can count', () => {
    const many = (count: number) => {
      const configurations = Array.from({ length: count }, (_, i) => ({ id: `c${i}`, scope: 'card' }));
      return () => readAuthorizationRequest(valid, { ...context, configurations });
    };
    expect(many(30)().credentialConfigurationIds).to.have.length(30);
    expect(many(31)).to.throw('at most 30 credentials');
    const [asked] = JSON.parse(details('card')) as object[];
    const by = (count: number) =>
      refusal({ authorization_details: JSON.stringify(Array(count).fill(asked)) });
    expect([by(30), by(31)]).to.deep.equal(['taken', 'invalid_authorization_details']);
  });

  describe('that needs no challenge', () => {
    const { code_challenge, code_challenge_method, ...unchallenged } = valid;
    const needs = { redirectUri: false, codeChallenge: false };

    it('may come without one, and with a right one', () => {
      expect(readAuthorizationRequest(unchallenged, context, needs)).to.not.have.property('codeChallenge');
      expect(readAuthorizationRequest(valid, context, needs)).to.include({ codeChallenge: code_challenge });
    });

    for (const [what, wrong] of Object.entries({
      'no method': { code_challenge },
      'the plain method': { code_challenge, code_challenge_method: 'plain' },
      'a method alone': { code_challenge_method },
      'a challenge that is none': { code_challenge: 'x', code_challenge_method },
    })) {
      it(`is refused with ${what}`, () => {
        const form: Record<string, string> = { ...unchallenged, ...wrong };
        expect(() => readAuthorizationRequest(form, context, needs)).to.throw('code_challenge_method S256');
      });
    }

    it('is refused without one where one is needed', () => {
      expect(() => readAuthorizationRequest(unchallenged, context)).to.throw('code_challenge_method S256');
    });
  });

  it('is answered in the query, and says so or nothing', () => {
    expect(refusal({})).to.equal('taken');
    expect(refusal({ response_mode: 'query' })).to.equal('taken');
    for (const response_mode of ['form_post', 'fragment', 'query.jwt', 'direct_post', 'QUERY']) {
      expect(refusal({ response_mode }), response_mode).to.equal('invalid_request');
    }
  });

  describe('is kept with its grant, so no part of it is long:', () => {
    const long: [string, Record<string, string>, string][] = [
      ['scope', { scope: `card ${'x'.repeat(4092)}` }, 'invalid_request'],
      ['client_id', { client_id: `https://${'x'.repeat(4089)}` }, 'invalid_request'],
      ['dpop_jkt', { dpop_jkt: 'x'.repeat(4097) }, 'invalid_request'],
      ['interaction_types_supported', { interaction_types_supported: 'x,'.repeat(2049) }, 'invalid_request'],
      ['issuer_state', { issuer_state: 'x'.repeat(4097) }, 'invalid_request'],
    ];
    for (const [name, change, code] of long) {
      it(`not ${name}`, () => {
        expect(refusal(change)).to.equal(code);
        const shorter = Object.entries(change).map(([key, value]) => [key, value.slice(0, 4096)]);
        expect(refusal(Object.fromEntries(shorter))).to.equal('taken');
      });
    }

    it('nor authorization_details, whatever they hold that nobody knows', () => {
      const details = (length: number) => {
        const text = (note: string) =>
          JSON.stringify([{ type: 'openid_credential', credential_configuration_id: 'card', note }]);
        return text('x'.repeat(length - text('').length));
      };
      expect(refusal({ authorization_details: details(16_384) })).to.equal('taken');
      expect(refusal({ authorization_details: details(16_385) })).to.equal('invalid_authorization_details');
    });
  });
});
