import { object, z } from 'zod';
import { Failure, type FieldError, invalidFields } from './failure.ts';

/** Sets of rules that a tenant can bind itself to. What contradicts them is refused when it is written. */
export const PROFILES = ['haip', 'eu'] as const;
export const Profile = z.enum(PROFILES);
export type Profile = z.infer<typeof Profile>;

/** The rules that a profile is made of: that of the European wallet has all of HAIP. */
const INCLUDED: Readonly<Record<Profile, readonly Profile[]>> = { haip: ['haip'], eu: ['haip', 'eu'] };

/** Whether who bound itself to `profile` keeps `rules`. @param profile null where a tenant has none. */
export function holdsTo(profile: Profile | null, rules: Profile): boolean {
  return profile !== null && INCLUDED[profile].includes(rules);
}

/** Something that may be written, although a wallet, a law or a reader will refuse what comes of it. */
export const Warning = object({
  rule: z.string().describe('What says so, such as `RFC 9901 section 9.5`, or `HAIP 1.0 section 5.1` under a profile'),
  member: z.string().describe('The member that it is about, dotted; empty for the whole'),
  concerns: z.string().describe('Who refuses, or is harmed'),
  message: z.string().describe('What happens as it is'),
  change: z.string().describe('What to change'),
}).meta({ id: 'Warning', description: 'Allowed, but somebody will refuse it' });
export type Warning = z.infer<typeof Warning>;

/** What is wrong with a resource: a warning, or a rejection under the profiles of `refusedBy`. */
export type Finding = Omit<Warning, 'rule'> & { readonly refusedBy?: readonly Profile[] } & (
    | {
        /** A rule that applies to every tenant. */
        readonly rule: string;
        /** The section of HAIP, the ARF or a specification of EUDI that demands the same; named to tenants with a profile alone. */
        readonly profileRule?: string;
      }
    | {
        readonly rule?: undefined;
        /** The only rule that demands it, so that a tenant without a profile gets no warning. */
        readonly profileRule: string;
      }
  );

/** Receives findings of a write that do not follow from the stored document, such as those about a fetched trust list. */
export type ReportFindings = (findings: readonly Finding[]) => void;

/** @param profile of the tenant; null where it has none. @returns what it refuses, as faults of fields. */
export function contradictions(findings: readonly Finding[], profile: Profile | null): FieldError[] {
  return findings
    .filter((finding) => isRejected(finding, profile))
    .map((finding) => ({
      path: finding.member,
      message: `profile ${profile} (${rulesOf(finding)}): ${finding.message}; ${finding.change}`,
    }));
}

/** Whether a write with this finding is rejected for a tenant with `profile`. */
export function isRejected({ refusedBy = [] }: Finding, profile: Profile | null): boolean {
  return refusedBy.some((rules) => holdsTo(profile, rules));
}

/** The rules behind a finding as a tenant with a profile reads them. */
function rulesOf({ profileRule, rule }: Finding): string {
  return [profileRule, rule].filter((each) => each !== undefined).join(', ');
}

/** @throws Failure `invalid_input` that names each member and the rule that it contradicts. */
export function assertWithin(profile: Profile | null, findings: readonly Finding[]): void {
  const faults = contradictions(findings, profile);
  if (faults.length > 0) throw invalidFields(faults);
}

/** More are not told at once. */
const MAX_FAULTS = 50;

/**
 * For a tenant that takes a profile on.
 * @param faults of all that it has configured, by the address of each.
 * @throws Failure `conflict` that names them.
 */
export function assertNothingContradicts(profile: Profile, faults: readonly FieldError[]): void {
  if (faults.length === 0) return;
  throw new Failure('conflict', {
    message: `what the tenant has configured contradicts the profile ${profile}; change it first`,
    errors: faults.slice(0, MAX_FAULTS),
  });
}

/**
 * Warnings of a write. What the profile of the tenant rejects was rejected before. A tenant without a profile reads neither
 * expectations nor sections of HAIP, the ARF and the specifications of EUDI.
 * @param profile of the tenant; null where it has none.
 */
export function warningsOf(findings: readonly Finding[], profile: Profile | null): Warning[] {
  return findings.flatMap((finding) => {
    const { refusedBy: _refusedBy, profileRule: _profileRule, rule, ...warning } = finding;
    if (profile !== null) return [{ rule: rulesOf(finding), ...warning }];
    return rule === undefined ? [] : [{ rule, ...warning }];
  });
}
