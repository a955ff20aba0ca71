import type { IssuedRegistrationCertificate, RelyingParty } from '../../domain/registrar/registrar-api.ts';
import {
  completeRegistration,
  type RegisteredUse,
  type RegistrationBody,
  type RegistrationCertificateRequest,
} from '../../domain/registrar/registration-certificate-request.ts';
import { invalidInput } from '../../domain/shared/failure.ts';
import type { Registrar, RegistrarAccount } from '../ports/registrar.ts';
import { registrarFailure } from './registrar-failures.ts';

export type Order = RegisteredUse & {
  readonly account: RegistrarAccount;
  readonly request: Pick<RegistrationCertificateRequest, 'id' | 'body'>;
  /** Path of the request in the caller's document; empty for the document itself. */
  readonly path: string;
};

/**
 * Looks up a registration certificate at the registrar, or orders one.
 * @throws Failure `invalid_input` for a request that the registrar rejects, `unavailable` when it does not
 *   answer.
 */
export async function obtainFromRegistrar(registrar: Registrar, order: Order): Promise<IssuedRegistrationCertificate> {
  const { account, request } = order;
  try {
    return request.id === undefined
      ? await create(registrar, order, request.body ?? {})
      : await find(registrar, account, request.id, joinPath(order.path, 'id'));
  } catch (error) {
    throw registrarFailure(error, order.path);
  }
}

async function find(registrar: Registrar, account: RegistrarAccount, id: string, path: string): Promise<IssuedRegistrationCertificate> {
  const issued = await registrar.findRegistrationCertificate(account, id);
  if (issued === undefined) throw invalidInput(path, 'The registrar has no registration certificate with this id.');
  if (issued.revoked) throw invalidInput(path, 'The registrar has revoked this registration certificate.');
  return issued;
}

async function create(
  registrar: Registrar,
  { account, query, issued: types, path }: Order,
  registration: RegistrationBody,
): Promise<IssuedRegistrationCertificate> {
  const body = completeRegistration(registration, account.configuration.registrationCertificateDefaults, { query, issued: types });
  if ('missing' in body) {
    const member = joinPath(joinPath(path, 'body'), body.missing);
    throw invalidInput(member, `A registration certificate requires ${body.missing}, here or in the defaults.`);
  }
  const { id: rpId } = firstOf(await registrar.relyingParties(account), path);
  const issued = await registrar.issueRegistrationCertificate(account, { ...body, rpId });
  if (issued.revoked) throw invalidInput(path, 'The registrar has revoked the certificate that it issued.');
  return issued;
}

/** @throws Failure `invalid_input` */
export function firstOf([firstParty]: readonly RelyingParty[], path: string): RelyingParty {
  if (firstParty === undefined) throw invalidInput(path, 'The account at the registrar has no relying party yet.');
  return firstParty;
}

function joinPath(path: string, member: string): string {
  return path === '' ? member : `${path}.${member}`;
}
