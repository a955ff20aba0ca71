import { type FieldError, invalidFields } from '../shared/failure.ts';
import type { TrustListConfiguration, TrustListEntity } from './list-configuration.ts';
import { type ListProfile, profileOf } from './list-profiles.ts';

/** @throws Failure `invalid_input` with each status in a list without statuses, or with a start in the future. */
export function assertStatusesValid({ entities, data }: TrustListConfiguration, now: Date): void {
  const hasStatuses = profileOf(data?.LoTE?.ListAndSchemeInformation?.LoTEType).fixed?.statuses !== undefined;
  const errors = entities.flatMap((entity, index): FieldError[] => {
    const statusMembers = (['status', 'statusStartingTime'] as const).filter((member) => entity[member] !== undefined);
    if (!hasStatuses) {
      const message =
        'Only a list of public bodies (EUPubEAAProvidersList) has this property: on other lists every listed entity is approved.';
      return statusMembers.map((member) => ({ path: `entities.${index}.${member}`, message }));
    }
    const { statusStartingTime: startTime } = entity;
    if (startTime === undefined || new Date(startTime) <= now) return [];
    return [{ path: `entities.${index}.statusStartingTime`, message: 'This time is in the future.' }];
  });
  if (errors.length > 0) throw invalidFields(errors);
}

/**
 * Sets the start of each status: as requested, otherwise as stored, otherwise now.
 * @param previous the stored list; undefined for a new one.
 */
export function withStatuses(
  requested: TrustListConfiguration,
  previous: TrustListConfiguration | undefined,
  now: Date,
): TrustListConfiguration {
  const { statuses } = profileOf(requested.data?.LoTE?.ListAndSchemeInformation?.LoTEType).fixed ?? {};
  if (statuses === undefined) return requested;
  const previousEntities = new Map((previous?.entities ?? []).map((entity) => [identityOf(entity), entity]));
  const entities = requested.entities.map((entity): TrustListEntity => {
    const { status = 'notified', statusStartingTime } = entity;
    const previousEntity = previousEntities.get(identityOf(entity));
    const previousStartTime = (previousEntity?.status ?? status) === status ? previousEntity?.statusStartingTime : undefined;
    return { ...entity, status, statusStartingTime: statusStartingTime ?? previousStartTime ?? wholeSeconds(now) };
  });
  return { ...requested, entities };
}

/** Status properties of a service; absent in lists without statuses. */
export function statusProperties(
  entity: TrustListEntity,
  { fixed }: ListProfile,
): { readonly ServiceStatus?: string; readonly StatusStartingTime?: string } {
  const { status, statusStartingTime } = entity;
  if (fixed?.statuses === undefined || status === undefined || statusStartingTime === undefined) return {};
  return { ServiceStatus: `${fixed.statuses}/${status}`, StatusStartingTime: statusStartingTime };
}

/** An entity with another address or other certificates stays the same entity. */
function identityOf({ type, info }: TrustListEntity): string {
  return JSON.stringify([type, info.name, info.lang ?? 'en', info.country ?? null]);
}

/** TS 119 602 section 6.1.3 */
function wholeSeconds(time: Date): string {
  return time.toISOString().replace(/\.\d{3}Z$/, 'Z');
}
