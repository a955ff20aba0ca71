import { expect } from 'chai';
import { deriveKey, MasterCipher } from '../../adapters/crypto/cipher.ts';

const FIRST = 'a first master secret of decent length';
const SECOND = 'a second master secret of decent length';

describe('MasterCipher', () => {
  const cipher = new MasterCipher({ masterSecrets: [FIRST] });
  const sealed = cipher.seal('Erika Mustermann', 'sessions/claims/acme/1');

  it('opens what it sealed for the same place', () => {
    expect(cipher.open(sealed, 'sessions/claims/acme/1').toString()).to.equal('Erika Mustermann');
  });

  it('seals bytes and the empty text', () => {
    const bytes = Buffer.from([0, 255, 128, 10]);
    expect(cipher.open(cipher.seal(bytes, 'here'), 'here')).to.deep.equal(bytes);
    expect(cipher.open(cipher.seal('', 'here'), 'here')).to.have.length(0);
  });

  it('seals the same text differently each time', () => {
    expect(cipher.seal('same', 'here')).to.not.equal(cipher.seal('same', 'here'));
  });

  it('does not open a ciphertext that was moved to another place', () => {
    expect(() => cipher.open(sealed, 'sessions/claims/other/1')).to.throw();
  });

  it('does not open under another master secret', () => {
    const other = new MasterCipher({ masterSecrets: [SECOND] });
    expect(() => other.open(sealed, 'sessions/claims/acme/1')).to.throw('unknown master secret');
  });

  it('seals under the first master secret and opens under all of them', () => {
    const rotated = new MasterCipher({ masterSecrets: [SECOND, FIRST] });
    expect(rotated.open(sealed, 'sessions/claims/acme/1').toString()).to.equal('Erika Mustermann');
    const anew = rotated.seal('new', 'here');
    expect(new MasterCipher({ masterSecrets: [SECOND] }).open(anew, 'here').toString()).to.equal('new');
    expect(() => cipher.open(anew, 'here')).to.throw();
  });

  it('does not open when any one character was changed', () => {
    const start = sealed.lastIndexOf('.') + 1;
    for (let at = start; at < sealed.length; at++) {
      const other = sealed[at] === 'A' ? 'B' : 'A';
      const changed = sealed.slice(0, at) + other + sealed.slice(at + 1);
      expect(() => cipher.open(changed, 'sessions/claims/acme/1'), `character ${at}`).to.throw();
    }
  });

  it('refuses what it never sealed', () => {
    const [version, keyId, body] = sealed.split('.');
    const foreign = [
      'plaintext',
      '',
      `v2.${keyId}.${body}`,
      `${version}.${keyId}.`,
      `${version}.${keyId}.AAAA`,
      `${sealed}.x`,
      `${sealed}=`,
    ];
    for (const text of foreign) expect(() => cipher.open(text, 'sessions/claims/acme/1'), text).to.throw();
  });

  it('needs a master secret', () => {
    expect(() => new MasterCipher({ masterSecrets: [] })).to.throw('master secret');
  });

  it('derives one key per purpose', () => {
    expect(deriveKey(FIRST, 'one')).to.have.length(32);
    expect(deriveKey(FIRST, 'one')).to.deep.equal(deriveKey(FIRST, 'one'));
    expect(deriveKey(FIRST, 'one')).to.not.deep.equal(deriveKey(FIRST, 'two'));
    expect(deriveKey(FIRST, 'one')).to.not.deep.equal(deriveKey(SECOND, 'one'));
  });

  it('makes codes that nobody without its secret makes for another text or purpose', () => {
    const macs = cipher.macs('one');
    const code = macs.make('text');
    expect(macs.make('text')).to.equal(code);
    expect(macs.check('text', code)).to.equal('genuine');
    expect(macs.check('other', code)).to.equal('forged');
    expect(macs.check('text', `${code}A`)).to.equal('forged');
    expect(macs.check('text', code.slice(0, -1))).to.equal('forged');
    expect(cipher.macs('two').check('text', code)).to.equal('forged');
    expect(new MasterCipher({ masterSecrets: [SECOND] }).macs('one').check('text', code)).to.equal(
      'unknown_key',
    );
    expect(new MasterCipher({ masterSecrets: [SECOND, FIRST] }).macs('one').check('text', code)).to.equal(
      'genuine',
    );
    expect(macs.check('text', '')).to.equal('unknown_key');
  });
});
