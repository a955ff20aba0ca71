import { strictObject, z } from 'zod';
import { describeRegistrationRequest } from '../../domain/audit/describe-change.ts';
import type { IssuedRegistrationCertificate } from '../../domain/registrar/registrar-api.ts';
import {
  certificateFor,
  EXCLUSIVE,
  isOneSource,
  ONE_SOURCE,
  registrationCertificateMembers,
} from '../../domain/registrar/registration-certificate-request.ts';
import { defined } from '../../domain/shared/defined.ts';
import { invalidInput } from '../../domain/shared/failure.ts';
import type { PresentationConfiguration } from '../../domain/verification/configuration.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Registrar } from '../ports/registrar.ts';
import { Store } from '../ports/store.ts';
import { obtainFromRegistrar } from '../registrar/obtain-from-registrar.ts';
import { getAccount } from '../registrar/registrar-account.ts';
import { registrarFailure } from '../registrar/registrar-failures.ts';
import { type CheckedCertificate, RegistrationCertificateVerifier } from '../registrar/registration-certificate-verifier.ts';
import { changeOwn } from '../transactions/own-changes.ts';
import { assertMaySee } from './presentation-configurations.ts';

export const RegistrationCertificateOrder = strictObject({
  ...registrationCertificateMembers,
  presentationConfigurationId: z
    .string()
    .min(1)
    .max(128)
    .optional()
    .describe('What it is for: `credentials` follow from its query, which the certificate has to cover'),
})
  .refine(isOneSource, ONE_SOURCE)
  .meta({ id: 'RegistrationCertificateOrder', ...EXCLUSIVE });
export type RegistrationCertificateOrder = z.infer<typeof RegistrationCertificateOrder>;

export type ObtainedRegistrationCertificate = CheckedCertificate & {
  /** The registrar's own name of it; absent for one that was brought along. */
  readonly id?: string;
  readonly relyingPartyId?: string;
};

/** One that was brought along has no more than itself. */
type Obtained = Pick<IssuedRegistrationCertificate, 'jwt'> & Partial<IssuedRegistrationCertificate>;

/** Has the registrar issue a registration certificate, or look one up, or checks one that was obtained elsewhere. */
export class ObtainRegistrationCertificate extends needs({
  store: Store,
  clock: Clock,
  registrar: Registrar,
  registrationCertificateVerifier: RegistrationCertificateVerifier,
}) {
  /**
   * What the registrar is asked for is recorded in the audit log.
   * @throws Failure `invalid_input` for what the registrar does not know or refuses and for a certificate that
   *   cannot be used, `conflict` without a registrar, `unavailable` when it does not answer.
   */
  async execute(
    caller: TenantCaller,
    { presentationConfigurationId, ...order }: RegistrationCertificateOrder,
  ): Promise<ObtainedRegistrationCertificate> {
    const { store, clock, registrar, registrationCertificateVerifier } = this.ports;
    const { configured } = caller;
    const { dcql_query: query, purpose } = (await configurationOf(caller, presentationConfigurationId)) ?? {};
    const request = certificateFor(order, purpose);
    const issued: Obtained =
      request.jwt === undefined
        ? await obtainFromRegistrar(registrar, { account: await getAccount(configured), request, query, path: '' })
        : { jwt: request.jwt };
    if (request.jwt === undefined) await changeOwn(store, caller, async ({ audit }) => audit.note(describeRegistrationRequest(issued.id)));
    const path = request.jwt === undefined ? '' : 'jwt';
    try {
      const { jwt, id, relyingPartyId } = issued;
      const certificate = await registrationCertificateVerifier.verify(configured, jwt, clock.now(), { query });
      return { ...certificate, ...defined({ id, relyingPartyId }) };
    } catch (error) {
      throw registrarFailure(error, path);
    }
  }
}

async function configurationOf(caller: TenantCaller, id: string | undefined): Promise<PresentationConfiguration | undefined> {
  if (id === undefined) return undefined;
  assertMaySee(caller, id);
  const configuration = await caller.configured.presentationConfiguration(id);
  if (configuration !== undefined) return configuration;
  throw invalidInput('presentationConfigurationId', `There is no presentation configuration "${id}".`);
}
