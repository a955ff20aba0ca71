import { type FieldError, invalidFields } from '../shared/failure.ts';
import type { TrustListConfiguration, TrustListEntity } from './list-configuration.ts';
import { type ListProfile, profileOf } from './list-profiles.ts';

/** @throws Failure `invalid_input` that names each status in a list whose entities have none, or that is to come. */
export function assertStatusesFit({ entities, data }: TrustListConfiguration, now: Date): void {
  const hasStatuses = profileOf(data?.LoTE?.ListAndSchemeInformation?.LoTEType).fixed?.statuses !== undefined;
  const errors = entities.flatMap((entity, index): FieldError[] => {
    const given = (['status', 'statusStartingTime'] as const).filter((member) => entity[member] !== undefined);
    if (!hasStatuses) {
      const message = 'Only a list of public bodies (EUPubEAAProvidersList) has it: elsewhere who is listed is approved.';
      return given.map((member) => ({ path: `entities.${index}.${member}`, message }));
    }
    const { statusStartingTime: since } = entity;
    if (since === undefined || new Date(since) <= now) return [];
    return [{ path: `entities.${index}.statusStartingTime`, message: 'This time has not come yet.' }];
  });
  if (errors.length > 0) throw invalidFields(errors);
}

/**
 * Since when each status holds: as it is said, else as it was known, else from now on.
 * @param known the list as it was; undefined for a new one.
 */
export function withStatuses(wanted: TrustListConfiguration, known: TrustListConfiguration | undefined, now: Date): TrustListConfiguration {
  const { statuses } = profileOf(wanted.data?.LoTE?.ListAndSchemeInformation?.LoTEType).fixed ?? {};
  if (statuses === undefined) return wanted;
  const before = new Map((known?.entities ?? []).map((entity) => [identityOf(entity), entity]));
  const entities = wanted.entities.map((entity): TrustListEntity => {
    const { status = 'notified', statusStartingTime } = entity;
    const former = before.get(identityOf(entity));
    const kept = (former?.status ?? status) === status ? former?.statusStartingTime : undefined;
    return { ...entity, status, statusStartingTime: statusStartingTime ?? kept ?? wholeSeconds(now) };
  });
  return { ...wanted, entities };
}

/** What a service says of its standing; nothing in lists where being listed is all. */
export function standingOf(
  entity: TrustListEntity,
  { fixed }: ListProfile,
): { readonly ServiceStatus?: string; readonly StatusStartingTime?: string } {
  const { status, statusStartingTime } = entity;
  if (fixed?.statuses === undefined || status === undefined || statusStartingTime === undefined) return {};
  return { ServiceStatus: `${fixed.statuses}/${status}`, StatusStartingTime: statusStartingTime };
}

/** An entity is the same one with another address or other certificates. */
function identityOf({ type, info }: TrustListEntity): string {
  return JSON.stringify([type, info.name, info.lang ?? 'en', info.country ?? null]);
}

/** TS 119 602 section 6.1.3 */
function wholeSeconds(time: Date): string {
  return time.toISOString().replace(/\.\d{3}Z$/, 'Z');
}
