import { expect } from 'chai';
import { Failure } from '../../../domain/shared/failure.ts';
import { HIDDEN, hideSecrets, keepSecrets } from '../../../domain/shared/secrets.ts';

const HOOK = {
  secrets: {
    'auth.key': {
      variable: 'KEY',
      sentTo: ['url', 'auth.header'],
      again: 'the address is another: give the key again',
    },
    pin: { variable: 'PIN' },
  },
};
const STORED = {
  url: 'https://a.example',
  auth: { header: 'x-key', key: 'stored key' },
  pin: '1234',
  note: 'n',
};

describe('The secrets of a document', () => {
  it('are not shown, and all else is', () => {
    expect(hideSecrets(HOOK, STORED)).to.deep.equal({
      ...STORED,
      auth: { header: 'x-key', key: HIDDEN },
      pin: HIDDEN,
    });
  });

  for (const none of [{}, { pin: null }, { pin: '' }, { auth: {} }, { auth: null }, { auth: { key: '' } }]) {
    it(`are not made up where there is none: ${JSON.stringify(none)}`, () => {
      expect(hideSecrets(HOOK, none)).to.deep.equal(none);
    });
  }

  it('stay when the document is written back as it was shown', () => {
    expect(keepSecrets(HOOK, hideSecrets(HOOK, STORED), STORED)).to.deep.equal(STORED);
    expect(keepSecrets(HOOK, { ...hideSecrets(HOOK, STORED), note: 'other' }, STORED)).to.deep.equal({
      ...STORED,
      note: 'other',
    });
  });

  it('are those that are given, wherever they are sent', () => {
    const next = { ...STORED, url: 'https://b.example', auth: { header: 'x', key: 'another' }, pin: '' };
    expect(keepSecrets(HOOK, next, STORED)).to.deep.equal(next);
    expect(keepSecrets(HOOK, next, undefined)).to.deep.equal(next);
  });

  const shown = hideSecrets(HOOK, STORED);
  for (const [what, next, before, path, said] of [
    [
      'when they would go to another address',
      { ...shown, url: 'https://evil.example' },
      STORED,
      'auth.key',
      'the address is another',
    ],
    [
      'when they would go into another header',
      { ...shown, auth: { key: HIDDEN, header: 'x-log' } },
      STORED,
      'auth.key',
      'the address is another',
    ],
    ['when their address is left out', { auth: shown.auth }, STORED, 'auth.key', 'the address is another'],
    ['when there was none', { pin: HIDDEN }, { url: 'x' }, 'pin', 'give the secret itself'],
    ['when nothing was there', { pin: HIDDEN }, undefined, 'pin', 'give the secret itself'],
  ] as const) {
    it(`have to be given again ${what}`, () => {
      expect(() => keepSecrets(HOOK, next, before))
        .to.throw(Failure, said)
        .with.nested.property('details.errors[0].path', path);
    });
  }
});
