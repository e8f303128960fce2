//! Relocatable ELF objects to code in memory: x86-64 and AArch64, Linux.
//!
//! All objects of a program go into one mapping, in three parts: code with call stubs (read and
//! execute), constants with the offset table (read), data (read and write). The mapping is written
//! while it is writable and gets its final rights before an address is handed out, so no page is
//! ever writable and executable at once. Symbols resolve to definitions in any of the objects, then
//! to [`crate::runtime::cpu::symbols`], to nothing else. Constructors never run; thread-local data
//! is refused. Relocations: System V psABI for x86-64, ELF for the Arm 64-bit Architecture.

use std::collections::BTreeMap;

use object::Object;
use object::ObjectSection;
use object::ObjectSymbol;
use object::RelocationFlags;
use object::RelocationTarget;
use object::SectionFlags;
use object::SectionIndex;
use object::SectionKind;
use object::SymbolIndex;
use object::SymbolSection;
use object::elf;

use crate::base::Diagnostic;
use crate::base::Location;
use crate::base::Result;
use crate::base::codes;
use crate::runtime::cpu::mapping::Mapping;
use crate::runtime::cpu::mapping::Rights;
use crate::runtime::cpu::relocate;
use crate::runtime::cpu::relocate::Machine;
use crate::runtime::cpu::relocate::Site;
use crate::runtime::cpu::symbols;

/// All code and data of a program together may not be larger; PC-relative code reaches no further.
const MAX_IMAGE: usize = 1 << 30;

/// AArch64 branches reach 128 MiB.
const MAX_CODE_AARCH64: usize = 120 << 20;

/// A section that wants more is refused.
const MAX_ALIGNMENT: u64 = 1 << 16;

/// Bytes of one call stub.
const STUB_BYTES: usize = 16;

fn refused(message: impl Into<String>) -> Box<Diagnostic> {
    Diagnostic::error(codes::LOAD, message)
}

/// Loaded code.
pub struct LoadedObjects {
    mapping: Mapping,
    symbols: BTreeMap<String, usize>,
}

impl LoadedObjects {
    /// The address of a global symbol.
    pub fn address(&self, name: &str) -> Option<usize> {
        self.symbols
            .get(name)
            .map(|offset| self.mapping.address() + offset)
    }
    /// Bytes mapped.
    pub fn size(&self) -> usize {
        self.mapping.size()
    }
}

/// Loads the objects, each with a name for diagnostics.
///
/// # Errors
/// `XA8003` when an object is damaged or of another machine, when a symbol is missing or defined
/// twice, or when a relocation is unknown or out of reach.
pub fn load<'d>(objects: impl IntoIterator<Item = (&'d str, &'d [u8])>) -> Result<LoadedObjects> {
    let machine = Machine::host().ok_or_else(|| refused("no loader for this kind of processor"))?;
    let mut parsed = Vec::new();
    for (name, bytes) in objects {
        let file = parse(name, bytes, machine)?;
        parsed.push(Parsed { name, file });
    }
    let mut image = Image::place(machine, &parsed)?;
    image.define_symbols(&parsed)?;
    image.prepare_imports(&parsed)?;
    image.finish(&parsed)
}

struct Parsed<'d> {
    name: &'d str,
    file: object::File<'d>,
}

fn parse<'d>(name: &str, bytes: &'d [u8], machine: Machine) -> Result<object::File<'d>> {
    let damaged = |e: object::Error| {
        refused(format!("the object cannot be read: {e}")).at(Location::Path(name.to_owned()))
    };
    let file = object::File::parse(bytes).map_err(damaged)?;
    if file.kind() != object::ObjectKind::Relocatable || file.format() != object::BinaryFormat::Elf
    {
        return Err(refused("not a relocatable ELF object").at(Location::Path(name.to_owned())));
    }
    if file.architecture() != machine.architecture() {
        let message = format!(
            "the object is for {:?}, this machine is {:?}",
            file.architecture(),
            machine.architecture()
        );
        return Err(refused(message).at(Location::Path(name.to_owned())));
    }
    Ok(file)
}

/// The part of the mapping a section goes to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Code,
    Constants,
    Data,
}

/// `SHT_LLVM_ADDRSIG`, which the crate does not name.
const LLVM_ADDRSIG: u32 = 0x6fff_4c03;

/// Section types beyond the plain ones that carry nothing to be loaded: groups, LLVM's lists of
/// symbols, and unwinding tables of x86-64.
const KNOWN_KINDS: &[u32] = &[
    elf::SHT_GROUP,
    LLVM_ADDRSIG,
    elf::SHT_LLVM_DEPENDENT_LIBRARIES,
    elf::SHT_X86_64_UNWIND,
    elf::SHT_INIT_ARRAY,
    elf::SHT_FINI_ARRAY,
    elf::SHT_PREINIT_ARRAY,
    elf::SHT_AARCH64_ATTRIBUTES,
    elf::SHT_GNU_ATTRIBUTES,
];

fn part_of(section: &object::Section<'_, '_>) -> Result<Option<Part>> {
    let SectionFlags::Elf { sh_flags } = section.flags() else {
        return Ok(None);
    };
    // What a section of a kind nobody knows means for the others cannot be told.
    if let SectionKind::Elf(kind) = section.kind()
        && !KNOWN_KINDS.contains(&kind)
    {
        return Err(refused(format!("a section has the unknown type {kind:#x}")));
    }
    let has = |flag: u32| sh_flags & u64::from(flag) != 0;
    if !has(elf::SHF_ALLOC) {
        return Ok(None);
    }
    if has(elf::SHF_TLS) {
        return Err(refused("thread-local data is not supported"));
    }
    Ok(Some(match (has(elf::SHF_EXECINSTR), has(elf::SHF_WRITE)) {
        (true, true) => return Err(refused("a section is writable and executable")),
        (true, false) => Part::Code,
        (false, false) => Part::Constants,
        (false, true) => Part::Data,
    }))
}

/// Where a symbol is.
#[derive(Clone, Copy)]
enum Place {
    /// At an offset of the mapping.
    Inside(usize),
    /// At an address outside it; absent weak symbols are at zero.
    Outside(u64),
}

type SymbolKey = (usize, usize);

struct Image {
    machine: Machine,
    /// Offset of each placed section in the mapping, by object and section.
    sections: BTreeMap<(usize, usize), usize>,
    /// Offset of each common symbol.
    commons: BTreeMap<SymbolKey, usize>,
    /// Global definitions by name: place, and whether it is weak.
    globals: BTreeMap<String, (Place, bool)>,
    /// Offset of the call stub of an outside address.
    stubs: BTreeMap<u64, usize>,
    /// Offset of the table slot that holds the address of a place.
    slots: BTreeMap<(bool, u64), usize>,
    code_end: usize,
    stubs_start: usize,
    constants_start: usize,
    slots_start: usize,
    data_start: usize,
    end: usize,
}

impl Image {
    /// Gives each section its offset.
    fn place(machine: Machine, objects: &[Parsed<'_>]) -> Result<Self> {
        let page = Mapping::page_size();
        let relocations = objects.iter().flat_map(|o| o.file.sections());
        let references: usize = relocations.map(|s| s.relocations().count()).sum();
        let mut image = Self {
            machine,
            sections: BTreeMap::new(),
            commons: BTreeMap::new(),
            globals: BTreeMap::new(),
            stubs: BTreeMap::new(),
            slots: BTreeMap::new(),
            code_end: 0,
            stubs_start: 0,
            constants_start: 0,
            slots_start: 0,
            data_start: 0,
            end: 0,
        };
        let outside = image.count_outside(objects, references);
        image.place_part(objects, Part::Code)?;
        image.stubs_start = image.end.next_multiple_of(STUB_BYTES);
        image.code_end = image.stubs_start + outside * STUB_BYTES;
        image.end = image.code_end.next_multiple_of(page);
        image.constants_start = image.end;
        image.place_part(objects, Part::Constants)?;
        image.slots_start = image.end.next_multiple_of(8);
        let table = references.min(image.count_table_references(objects));
        image.end = (image.slots_start + 8 * table).next_multiple_of(page);
        image.data_start = image.end;
        image.place_part(objects, Part::Data)?;
        image.place_commons(objects)?;
        if machine == Machine::AArch64 && image.code_end > MAX_CODE_AARCH64 {
            return Err(refused("more code than branches can reach"));
        }
        Ok(image)
    }

    /// An upper bound of the distinct outside addresses, the null address among them.
    fn count_outside(&self, objects: &[Parsed<'_>], references: usize) -> usize {
        let symbols = objects.iter().flat_map(|o| o.file.symbols());
        let outside =
            symbols.filter(|s| s.is_undefined() || s.section() == SymbolSection::Absolute);
        (outside.count() + 1).min(references)
    }

    fn count_table_references(&self, objects: &[Parsed<'_>]) -> usize {
        let sections = objects.iter().flat_map(|o| o.file.sections());
        let kinds = sections.flat_map(|s| s.relocations().map(|(_, r)| r.flags()));
        kinds
            .filter(|flags| elf_type(*flags).is_some_and(|t| self.machine.uses_table(t)))
            .count()
    }

    fn place_part(&mut self, objects: &[Parsed<'_>], part: Part) -> Result<()> {
        for (o, object) in objects.iter().enumerate() {
            for section in object.file.sections() {
                let at = || Location::Path(object.name.to_owned());
                if part_of(&section).map_err(|e| e.at(at()))? != Some(part) {
                    continue;
                }
                let offset = self
                    .reserve(section.size(), section.align())
                    .map_err(|e| e.at(at()))?;
                self.sections.insert((o, section.index().0), offset);
            }
        }
        Ok(())
    }

    fn place_commons(&mut self, objects: &[Parsed<'_>]) -> Result<()> {
        for (o, object) in objects.iter().enumerate() {
            for symbol in object.file.symbols().filter(|s| s.is_common()) {
                // The value of a common symbol is its alignment.
                let offset = self.reserve(symbol.size(), symbol.address())?;
                self.commons.insert((o, symbol.index().0), offset);
            }
        }
        Ok(())
    }

    fn reserve(&mut self, size: u64, alignment: u64) -> Result<usize> {
        let alignment = alignment.max(1);
        if !alignment.is_power_of_two() || alignment > MAX_ALIGNMENT {
            return Err(refused(format!(
                "a section wants an alignment of {alignment}"
            )));
        }
        let start = self.end.next_multiple_of(alignment as usize);
        let end = usize::try_from(size)
            .ok()
            .and_then(|size| start.checked_add(size));
        self.end = end
            .filter(|end| *end <= MAX_IMAGE)
            .ok_or_else(|| refused("the objects are larger than the loader allows"))?;
        Ok(start)
    }

    /// Collects the global definitions of all objects.
    fn define_symbols(&mut self, objects: &[Parsed<'_>]) -> Result<()> {
        for (o, object) in objects.iter().enumerate() {
            for symbol in object.file.symbols() {
                if !symbol.is_global() || symbol.is_undefined() {
                    continue;
                }
                let at = || Location::Path(object.name.to_owned());
                let name = symbol_name(&symbol).map_err(|e| e.at(at()))?;
                let Some(place) = self.defined_place(o, &symbol) else {
                    continue;
                };
                let weak = symbol.is_weak() || symbol.is_common();
                match self.globals.get(name) {
                    Some((_, false)) if !weak => {
                        let message = format!("symbol `{name}` is defined twice");
                        return Err(refused(message).at(at()));
                    }
                    Some((_, other_weak)) if weak || !other_weak => {}
                    _ => {
                        self.globals.insert(name.to_owned(), (place, weak));
                    }
                }
            }
        }
        Ok(())
    }

    fn defined_place(&self, object: usize, symbol: &object::Symbol<'_, '_>) -> Option<Place> {
        match symbol.section() {
            SymbolSection::Section(SectionIndex(section)) => {
                let base = self.sections.get(&(object, section))?;
                let value = usize::try_from(symbol.address()).ok()?;
                let offset = base.checked_add(value).filter(|at| *at <= self.end)?;
                Some(Place::Inside(offset))
            }
            SymbolSection::Common => {
                let key = (object, symbol.index().0);
                self.commons.get(&key).map(|&at| Place::Inside(at))
            }
            SymbolSection::Absolute => Some(Place::Outside(symbol.address())),
            _ => None,
        }
    }

    /// Where the target of a relocation is.
    fn resolve(
        &self,
        object: usize,
        file: &object::File<'_>,
        target: RelocationTarget,
    ) -> Result<Place> {
        match target {
            RelocationTarget::Symbol(index) => self.resolve_symbol(object, file, index),
            RelocationTarget::Section(section) => {
                let base = self.sections.get(&(object, section.0));
                base.map(|&at| Place::Inside(at))
                    .ok_or_else(|| refused("a relocation names a section that is not loaded"))
            }
            _ => Ok(Place::Outside(0)),
        }
    }

    fn resolve_symbol(
        &self,
        object: usize,
        file: &object::File<'_>,
        index: SymbolIndex,
    ) -> Result<Place> {
        if index.0 == 0 {
            return Ok(Place::Outside(0));
        }
        let symbol = file
            .symbol_by_index(index)
            .map_err(|e| refused(format!("a relocation names a missing symbol: {e}")))?;
        // Local symbols are their object's own; global ones go by name.
        if !symbol.is_global() {
            return self
                .defined_place(object, &symbol)
                .ok_or_else(|| refused("a local symbol has no place"));
        }
        let name = symbol_name(&symbol)?;
        if let Some((place, _)) = self.globals.get(name) {
            return Ok(*place);
        }
        if name == "_GLOBAL_OFFSET_TABLE_" {
            return Ok(Place::Inside(self.slots_start));
        }
        match symbols::address(name) {
            Some(address) => Ok(Place::Outside(address as u64)),
            None if symbol.is_weak() => Ok(Place::Outside(0)),
            None => Err(refused(format!("symbol `{name}` is not defined"))
                .help("programs may use memory and libm functions only")),
        }
    }

    /// Gives a stub to each outside address that code calls, and a slot to each table reference.
    fn prepare_imports(&mut self, objects: &[Parsed<'_>]) -> Result<()> {
        for (o, object) in objects.iter().enumerate() {
            for section in object.file.sections() {
                if !self.sections.contains_key(&(o, section.index().0)) {
                    continue;
                }
                for (_, relocation) in section.relocations() {
                    let Some(kind) = elf_type(relocation.flags()) else {
                        continue;
                    };
                    let place = self
                        .resolve(o, &object.file, relocation.target())
                        .map_err(|e| e.at(Location::Path(object.name.to_owned())))?;
                    self.prepare_import(kind, place);
                }
            }
        }
        Ok(())
    }

    fn prepare_import(&mut self, kind: u32, place: Place) {
        if let Place::Outside(address) = place
            && self.machine.is_call(kind)
        {
            let next = self.stubs_start + self.stubs.len() * STUB_BYTES;
            self.stubs.entry(address).or_insert(next);
        }
        if self.machine.uses_table(kind) {
            let next = self.slots_start + self.slots.len() * 8;
            self.slots.entry(slot_key(place)).or_insert(next);
        }
    }

    /// Maps, fills, relocates and protects.
    fn finish(self, objects: &[Parsed<'_>]) -> Result<LoadedObjects> {
        let mut mapping = Mapping::new(self.end.max(1))?;
        for (&(o, s), &offset) in &self.sections {
            let section = objects[o].file.section_by_index(SectionIndex(s));
            let data = section.and_then(|section| section.data());
            let data = data.map_err(|e| {
                refused(format!("a section cannot be read: {e}"))
                    .at(Location::Path(objects[o].name.to_owned()))
            })?;
            // A section without data in the file (.bss) stays zero.
            mapping.bytes_mut()[offset..offset + data.len()].copy_from_slice(data);
        }
        let base = mapping.address() as u64;
        for (&address, &offset) in &self.stubs {
            let stub = self.machine.stub(address);
            mapping.bytes_mut()[offset..offset + STUB_BYTES].copy_from_slice(&stub);
        }
        for (&(inside, value), &offset) in &self.slots {
            let value = if inside { base + value } else { value };
            mapping.bytes_mut()[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
        }
        for (o, object) in objects.iter().enumerate() {
            for section in object.file.sections() {
                let Some(&start) = self.sections.get(&(o, section.index().0)) else {
                    continue;
                };
                self.relocate_section(o, object, &section, start, &mut mapping)?;
            }
        }
        let page = Mapping::page_size();
        mapping.protect(0, self.code_end.next_multiple_of(page), Rights::Execute)?;
        let constants = self.constants_start..self.data_start;
        mapping.protect(constants.start, constants.len(), Rights::Read)?;
        let inside = self
            .globals
            .into_iter()
            .filter_map(|(name, (place, _))| match place {
                Place::Inside(offset) => Some((name, offset)),
                Place::Outside(_) => None,
            });
        let symbols = inside.collect();
        Ok(LoadedObjects { mapping, symbols })
    }

    fn relocate_section(
        &self,
        o: usize,
        object: &Parsed<'_>,
        section: &object::Section<'_, '_>,
        start: usize,
        mapping: &mut Mapping,
    ) -> Result<()> {
        let base = mapping.address() as u64;
        let size = section.size() as usize;
        for (at, relocation) in section.relocations() {
            let located = |e: Box<Diagnostic>| {
                let name = section.name().unwrap_or("?");
                e.or_at(|| Location::Path(format!("{} {name}+{at:#x}", object.name)))
            };
            let kind = elf_type(relocation.flags())
                .ok_or_else(|| located(refused("a relocation of another format")))?;
            let place = self
                .resolve(o, &object.file, relocation.target())
                .map_err(located)?;
            let mut symbol = match place {
                Place::Inside(offset) => base + offset as u64,
                Place::Outside(address) => address,
            };
            if let Place::Outside(address) = place
                && let Some(stub) = self.stubs.get(&address)
                && self.machine.is_call(kind)
            {
                symbol = base + *stub as u64;
            }
            let slot = self
                .slots
                .get(&slot_key(place))
                .map(|&slot| base + slot as u64);
            let offset = usize::try_from(at).ok().filter(|offset| *offset < size);
            let offset =
                offset.ok_or_else(|| located(refused("a relocation outside its section")))?;
            let site = Site {
                bytes: &mut mapping.bytes_mut()[start + offset..start + size],
                address: base + (start + offset) as u64,
            };
            let values = relocate::Values {
                symbol,
                addend: relocation.addend(),
                slot: slot.unwrap_or(0),
                table: base + self.slots_start as u64,
            };
            relocate::apply(self.machine, kind, site, &values).map_err(located)?;
        }
        Ok(())
    }
}

fn slot_key(place: Place) -> (bool, u64) {
    match place {
        Place::Inside(offset) => (true, offset as u64),
        Place::Outside(address) => (false, address),
    }
}

fn elf_type(flags: RelocationFlags) -> Option<u32> {
    match flags {
        RelocationFlags::Elf { r_type } => Some(r_type),
        _ => None,
    }
}

fn symbol_name<'d>(symbol: &object::Symbol<'d, '_>) -> Result<&'d str> {
    symbol
        .name()
        .map_err(|e| refused(format!("a symbol has no readable name: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rubbish_is_refused() {
        for bytes in [&b""[..], b"\x7fELF", &[0; 100]] {
            let refused = load([("x.o", bytes)]).err().unwrap();
            assert_eq!(refused.code, codes::LOAD);
        }
        assert!(load([]).is_ok());
    }
}
