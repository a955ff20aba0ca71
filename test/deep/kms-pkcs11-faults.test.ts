import { inspect } from 'node:util';
import { expect } from 'chai';
import { CKA, CKK, CKO } from '../../adapters/kms/pkcs11/cryptoki.ts';
import { type StoredKey, signingKey } from '../../domain/keys/signing-key.ts';
import { failing } from '../contract/kms-provider.suite.ts';
import { errorMessage, expectValidSignature, hasSoftHsm, PIN, SoftHsm, type TokenAccess, unavailableReason } from '../support/softhsm.ts';

/** CKF_USER_PIN_COUNT_LOW: a wrong PIN was entered since the last correct one. */
const WRONG_PIN_GIVEN = 0x1_0000;

if (hasSoftHsm()) {
  describe('HSM faults', () => {
    let hsm: SoftHsm;

    beforeEach(() => {
      hsm = new SoftHsm();
    });
    afterEach(() => hsm.stop());

    describe('the token', () => {
      it('may become available after the start', async () => {
        const kms = await hsm.open('hsm', 'later');
        expect(kms.algorithms).to.have.length(4);
        expect(await errorMessage(() => kms.assertReachable())).to.equal(
          'the key provider "hsm" does not work: no token has the label "later"; the library shows 0 initialized tokens',
        );
        expect(await unavailableReason(() => kms.generate('acme', 'ES256'))).to.contain('"later"');
        hsm.addToken('later');
        await kms.assertReachable();
        await expectValidSignature(kms, await kms.generate('acme', 'ES256'));
      });

      it('is searched again when no other session uses the library', async () => {
        hsm.addToken('there');
        const [unrelatedKms, kms] = [await hsm.open('there', 'there'), await hsm.open('hsm', 'later')];
        hsm.addToken('later');
        const key = await unrelatedKms.generate('acme', 'ES256');
        expect(await errorMessage(() => kms.assertReachable())).to.contain('shows 1 initialized tokens');
        await expectValidSignature(unrelatedKms, key);
        await unrelatedKms.close();
        await kms.assertReachable();
      });

      it('is not chosen when several tokens have its label', async () => {
        hsm.addToken('twin');
        hsm.addToken('twin');
        const kms = await hsm.open('hsm', 'twin');
        expect(await errorMessage(() => kms.assertReachable())).to.contain('more than one token');
      });
    });

    it('gets a rejected PIN once, and never again from this process', async () => {
      hsm.addToken('locked', 'another-pin');
      const flags = () => hsm.withSession('locked', (cryptoki, _, slot) => cryptoki.C_GetTokenInfo(slot).flags & WRONG_PIN_GIVEN);
      const kms = await hsm.open('hsm', 'locked');
      expect(flags()).to.equal(WRONG_PIN_GIVEN);
      expect(await errorMessage(() => kms.assertReachable())).to.match(/the PIN was rejected .*CKR_PIN_INCORRECT.*correct it and restart/);
      hsm.withSession('locked', (cryptoki, session) => {
        cryptoki.C_Login(session, 1, 'another-pin');
        cryptoki.C_SetPIN(session, 'another-pin', PIN);
        cryptoki.C_Logout(session);
      });
      // Now it is the correct PIN.
      expect(await unavailableReason(() => kms.generate('acme', 'ES256'))).to.contain('the PIN was rejected');
      const lockedKms = await hsm.open('again', 'locked');
      expect(await errorMessage(() => lockedKms.assertReachable())).to.contain('the PIN was rejected');
      expect(flags()).to.equal(0);
    });

    describe('a session', () => {
      const sessionLosses: Record<string, (cryptoki: TokenAccess, slot: Buffer, session: Buffer) => void> = {
        'the sessions of all are closed': (other, slot) => other.C_CloseAllSessions(slot),
        'the user is logged out': (other, _, session) => other.C_Logout(session),
      };
      for (const [title, loseSession] of Object.entries(sessionLosses)) {
        it(`is opened again when ${title}`, async () => {
          hsm.addToken('restarted');
          const [kms, otherKms] = [await hsm.open('hsm', 'restarted'), await hsm.open('other', 'restarted')];
          const key = await kms.generate('acme', 'ES256');
          await Promise.all(Array.from({ length: 20 }, () => expectValidSignature(kms, key)));
          hsm.withSession('restarted', (other, session, slot) => loseSession(other, slot, session));
          await Promise.all(Array.from({ length: 20 }, (_, index) => expectValidSignature(index % 2 === 0 ? kms : otherKms, key)));
          hsm.withSession('restarted', (other, session, slot) => loseSession(other, slot, session));
          await expectValidSignature(otherKms, await kms.generate('acme', 'ES256'));
          await Promise.all([kms.assertReachable(), otherKms.assertReachable()]);
        });
      }
    });

    it('is used again when the library was finalized', async () => {
      hsm.addToken('ended');
      const kms = await hsm.open('hsm', 'ended');
      const key = await kms.generate('acme', 'ES256');
      hsm.cryptoki().C_Finalize();
      await expectValidSignature(kms, key);
      await Promise.all(Array.from({ length: 20 }, () => expectValidSignature(kms, key)));
    });

    describe('a key', () => {
      const template = ({ handle }: StoredKey, attributes: { type: number; value: number }[] = []) => [
        { type: CKA.id, value: Buffer.from(handle.keyId, 'hex') },
        ...attributes,
      ];
      const destroy = (key: StoredKey) =>
        hsm.withSession('one', (other, session) => {
          other.C_FindObjectsInit(session, template(key));
          const objects = other.C_FindObjects(session, 10);
          other.C_FindObjectsFinal(session);
          for (const object of objects) other.C_DestroyObject(session, object);
        });

      it('that was destroyed does not delay another key', async () => {
        hsm.addToken('one');
        const kms = await hsm.open('hsm', 'one');
        const [key, other] = [await kms.generate('acme', 'ES256'), await kms.generate('acme', 'ES256')];
        await expectValidSignature(kms, key);
        destroy(key);
        for (let call = 0; call < 10; call++)
          expect(await unavailableReason(() => kms.sign(signingKey('acme', key), 'data'))).to.contain(
            `the token has no key acme.${key.handle.keyId}`,
          );
        await expectValidSignature(kms, other);
        await kms.assertReachable();
      });

      it('is found again when it was restored', async () => {
        hsm.addToken('one');
        const kms = await hsm.open('hsm', 'one', { sessions: 1 });
        const seed = Buffer.alloc(32, 7);
        const createObject = ({ handle: { keyId } }: StoredKey) =>
          hsm.withSession('one', (other, session) =>
            other.C_CreateObject(session, [
              { type: CKA.class, value: CKO.privateKey },
              { type: CKA.keyType, value: CKK.ecEdwards },
              { type: CKA.token, value: true },
              { type: CKA.private, value: true },
              { type: CKA.sign, value: true },
              { type: CKA.ecParameters, value: Buffer.from('06032b6570', 'hex') },
              { type: CKA.value, value: seed },
              { type: CKA.id, value: Buffer.from(keyId, 'hex') },
              { type: CKA.label, value: `acme.${keyId}` },
            ]),
          );
        const header = Buffer.from('302e020100300506032b657004220420', 'hex');
        const key = await kms.import('acme', Buffer.concat([header, seed]));
        await expectValidSignature(kms, key);
        destroy(key);
        createObject(key);
        await expectValidSignature(kms, key);
        createObject(key);
        const laterKms = await hsm.open('hsm', 'one');
        expect(await unavailableReason(() => laterKms.sign(signingKey('acme', key), 'data'))).to.contain('more than one key');
      });
    });

    it('is finalized with the last provider', async () => {
      hsm.addToken('one');
      const [firstKms, lastKms] = [await hsm.open('first', 'one'), await hsm.open('last', 'one')];
      await firstKms.close();
      const other = hsm.cryptoki();
      expect(other.C_GetSlotList(true)).to.have.length(2);
      await lastKms.assertReachable();
      await lastKms.close();
      expect(() => other.C_GetSlotList(true)).to.throw('CKR_CRYPTOKI_NOT_INITIALIZED');
      expect(await unavailableReason(() => lastKms.generate('acme', 'ES256'))).to.contain('closed');
    });

    it('never shows its PIN', async () => {
      hsm.addToken('refusing', 'another-pin');
      hsm.addToken('two');
      const logged: unknown[] = [];
      for (const token of ['refusing', 'two', 'three']) {
        const kms = await hsm.open(token, token);
        const key = { tenantId: 'acme', handle: { kms: token, keyId: '00', algorithm: 'ES256' } } as const;
        logged.push(kms, await failing(() => kms.assertReachable()), await failing(() => kms.generate('acme', 'ES256')));
        logged.push(await failing(() => kms.sign(key, 'data')));
        await kms.close();
      }
      expect(logged).to.have.length(12);
      expect(inspect(logged, { depth: 20, showHidden: true, getters: true })).to.not.contain(PIN);
    });
  });
}
