import { strictObject, z } from 'zod';
import { describeRegistrationRequest } from '../../domain/audit/describe-change.ts';
import type { IssuedRegistrationCertificate } from '../../domain/registrar/registrar-api.ts';
import {
  EXCLUSIVE,
  isOneSource,
  ONE_SOURCE,
  registrationCertificateProperties,
  registrationRequestFor,
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
import { changeTenant } from '../transactions/tenant-changes.ts';
import { assertMaySee } from './presentation-configurations.ts';

export const RegistrationCertificateOrder = strictObject({
  ...registrationCertificateProperties,
  presentationConfigurationId: z
    .string()
    .min(1)
    .max(128)
    .optional()
    .describe('Its presentation configuration: `credentials` are derived from its query, which the certificate must cover'),
})
  .refine(isOneSource, ONE_SOURCE)
  .meta({ id: 'RegistrationCertificateOrder', ...EXCLUSIVE });
export type RegistrationCertificateOrder = z.infer<typeof RegistrationCertificateOrder>;

export type ObtainedRegistrationCertificate = CheckedCertificate & {
  /** Id at the registrar; absent for a certificate that the request contains. */
  readonly id?: string;
  readonly relyingPartyId?: string;
};

type Obtained = Pick<IssuedRegistrationCertificate, 'jwt'> & Partial<IssuedRegistrationCertificate>;

/** Orders a registration certificate at the registrar, looks one up, or verifies one from the request. */
export class ObtainRegistrationCertificate extends needs({
  store: Store,
  clock: Clock,
  registrar: Registrar,
  registrationCertificateVerifier: RegistrationCertificateVerifier,
}) {
  /**
   * Orders at the registrar are recorded in the audit log.
   * @throws Failure `invalid_input` for a request that the registrar rejects and for a certificate that
   *   cannot be used, `conflict` without a registrar, `unavailable` when it does not answer.
   */
  async execute(
    caller: TenantCaller,
    { presentationConfigurationId, ...order }: RegistrationCertificateOrder,
  ): Promise<ObtainedRegistrationCertificate> {
    const { store, clock, registrar, registrationCertificateVerifier } = this.ports;
    const { tenant } = caller;
    const { dcql_query: query, purpose } = (await configurationOf(caller, presentationConfigurationId)) ?? {};
    const request = registrationRequestFor(order, purpose);
    const issued: Obtained =
      request.jwt === undefined
        ? await obtainFromRegistrar(registrar, { account: await getAccount(tenant), request, query, path: '' })
        : { jwt: request.jwt };
    if (request.jwt === undefined)
      await changeTenant(store, caller, async ({ audit }) => audit.note(describeRegistrationRequest(issued.id)));
    const path = request.jwt === undefined ? '' : 'jwt';
    try {
      const { jwt, id, relyingPartyId } = issued;
      const certificate = await registrationCertificateVerifier.verify(tenant, jwt, clock.now(), { query });
      return { ...certificate, ...defined({ id, relyingPartyId }) };
    } catch (error) {
      throw registrarFailure(error, path);
    }
  }
}

async function configurationOf(caller: TenantCaller, id: string | undefined): Promise<PresentationConfiguration | undefined> {
  if (id === undefined) return undefined;
  assertMaySee(caller, id);
  const configuration = await caller.tenant.presentationConfiguration(id);
  if (configuration !== undefined) return configuration;
  throw invalidInput('presentationConfigurationId', `There is no presentation configuration "${id}".`);
}
