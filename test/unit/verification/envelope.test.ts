import { expect } from 'chai';
import { Failure } from '../../../domain/shared/failure.ts';
import {
  isUndecrypted,
  openDcApiData,
  openForm,
  openPlaintext,
} from '../../../domain/verification/envelope.ts';

const REQUEST = { state: 's', responseMode: 'direct_post.jwt' } as const;
const PLAIN = { state: 's', responseMode: 'direct_post' } as const;

/** What it comes to in a word: a failure leaves the session as it is. */
function outcome(open: () => ReturnType<typeof openForm>): string {
  try {
    const opened = open();
    if (opened.kind === 'refused') return `${opened.code}: ${opened.detail}`;
    return opened.kind === 'wallet_error' ? `${opened.error.code}: ${opened.error.message}` : opened.kind;
  } catch (error) {
    if (error instanceof Failure) return `untouched: ${error.message}`;
    throw error;
  }
}

describe('What a wallet posts', () => {
  const forms: readonly [string, Parameters<typeof openForm>, RegExp][] = [
    ['an encrypted answer', [{ response: 'a' }, REQUEST], /^encrypted$/],
    ['one with the state outside as well', [{ response: 'a', state: 's' }, REQUEST], /^encrypted$/],
    ['one with a foreign state outside', [{ response: 'a', state: 'x' }, REQUEST], /^untouched: state/],
    ['one and an error', [{ response: 'a', error: 'e' }, REQUEST], /^response_mode: response and more/],
    ['a plain answer', [{ vp_token: '{}', state: 's' }, PLAIN], /^presentations$/],
    ['one that is no JSON', [{ vp_token: '{', state: 's' }, PLAIN], /^malformed: vp_token/],
    ['an error without words', [{ error: 'e', state: 's' }, PLAIN], /the wallet refused$/],
    ['an error with words', [{ error: 'e', error_description: 'no', state: 's' }, PLAIN], /: no$/],
  ];
  for (const [what, given, expected] of forms) {
    it(`is told apart: ${what}`, () => expect(outcome(() => openForm(...given))).to.match(expected));
  }
});

describe('What a wallet encrypted', () => {
  const texts: readonly [string, string, RegExp][] = [
    ['an answer', '{"state":"s","vp_token":{}}', /^presentations$/],
    ['an answer with a foreign state', '{"state":"x","vp_token":{}}', /^untouched: state/],
    ['nothing', '{"state":"s"}', /^untouched: send/],
    ['an answer and an error', '{"state":"s","vp_token":{},"error":"e"}', /^response_mode: vp_token and/],
    ['an error', '{"state":"s","error":"access_denied"}', /^access_denied: /],
    ['an error that is no text', '{"state":"s","error":["access_denied"]}', /^wallet_error: the wallet/],
  ];
  for (const [what, text, expected] of texts) {
    it(`is told apart: ${what}`, () =>
      expect(outcome(() => openPlaintext(text, REQUEST))).to.match(expected));
  }

  describe('of a request with one state per link', () => {
    const twoLinks = { ...REQUEST, crossDeviceState: 'other' };
    const parameters: readonly [string, string][] = [
      ['presentation', '"vp_token":{}'],
      ['error', '"error":"access_denied"'],
    ];
    const states = ['s', 'other'];
    for (const [kind, parameter] of parameters) {
      for (const outer of states) {
        for (const inner of states) {
          const isSame = outer === inner;
          it(`${isSame ? 'accepts' : 'rejects'} an encrypted ${kind} with state ${inner} inside and ${outer} outside`, () => {
            const opened = openForm({ response: 'a', state: outer }, twoLinks);
            if (opened.kind !== 'encrypted') throw new Error(opened.kind);
            const open = () =>
              openPlaintext(`{"state":"${inner}",${parameter}}`, twoLinks, opened.outerState);
            expect(outcome(open)).to.match(isSame ? /^presentations$|^access_denied/ : /^untouched: state/);
          });
        }
      }
    }
  });

  it('has no state through the Digital Credentials API', () => {
    expect(outcome(() => openPlaintext('{"vp_token":{}}'))).to.equal('presentations');
  });

  it('is known by that when it does not decrypt', () => {
    expect(isUndecrypted(openPlaintext(undefined, REQUEST))).to.equal(true);
    expect(isUndecrypted(openPlaintext('[]', REQUEST))).to.equal(false);
  });
});

describe('What a page hands over', () => {
  const data: readonly [string, Parameters<typeof openDcApiData>[0], RegExp, RegExp][] = [
    ['an encrypted answer', { response: 'a' }, /^encrypted$/, /^response_mode: encrypted, though/],
    ['one beside an error that is null', { response: 'a', error: null }, /^encrypted$/, /^response_mode/],
    ['one beside a plain answer', { response: 'a', vp_token: {} }, /: response and/, /: response and/],
    ['one beside an error', { response: 'a', error: 'e' }, /: response and/, /: response and/],
    ['one that is no text', { response: {} }, /^malformed: response is/, /^response_mode/],
    ['a plain answer', { vp_token: {}, error: null }, /^response_mode: not encrypted/, /^presentations$/],
    ['an error', { error: 'access_denied' }, /^access_denied: the wallet/, /^access_denied: the wallet/],
    ['an answer and an error', { vp_token: {}, error: 'e' }, /: vp_token and error/, /: vp_token and error/],
    ['nothing', {}, /^untouched: send/, /^untouched: send/],
    ['an error that is null', { error: null }, /^untouched: send/, /^untouched: send/],
  ];
  for (const [what, given, encrypted, plain] of data) {
    it(`is told apart: ${what}`, () => {
      expect(outcome(() => openDcApiData(given, { responseMode: 'dc_api.jwt' }))).to.match(encrypted);
      expect(outcome(() => openDcApiData(given, { responseMode: 'dc_api' }))).to.match(plain);
    });
  }
});
