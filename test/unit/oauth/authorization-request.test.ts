import { expect } from 'chai';
import { readAuthorizationRequest } from '../../../domain/oauth/authorization-request.ts';
import { Failure } from '../../../domain/shared/failure.ts';

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
const refusal = (change: Record<string, string>) => {
  try {
    read(change);
  } catch (error) {
    if (error instanceof Failure) return error.code;
    throw error;
  }
  return 'none';
};

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

  it('is answered in the query, and says so or nothing', () => {
    expect(refusal({})).to.equal('none');
    expect(refusal({ response_mode: 'query' })).to.equal('none');
    for (const response_mode of ['form_post', 'fragment', 'query.jwt', 'direct_post', 'QUERY']) {
      expect(refusal({ response_mode }), response_mode).to.equal('invalid_request');
    }
  });
});
