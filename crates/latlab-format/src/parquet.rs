//! Records as Parquet, for DuckDB, pandas and Polars. Numbers are delta-encoded and names
//! prefix-encoded, so that the files are small without a codec.

mod tables;

use super::output::{self, Destination, Format};
use super::picture::NamedRecord;
use ::parquet::basic::{ConvertedType, Encoding, LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{
    ByteArray, ByteArrayType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, Int64Type,
};
use ::parquet::errors::Result;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::schema::types::{ColumnPath, Type};
use latlab_core::record::SCHEMA;
use latlab_part::failure::{self, Context as _};
use latlab_part::part::About;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use tables::tables;

/// The format in the table of output formats.
pub(super) const FORMAT: Format = Format {
    about: About {
        name: "parquet",
        summary: "Write series, samples, worst and figures as Parquet (docs/record.md)",
    },
    option: "parquet",
    short: None,
    destination: Destination::Folder,
    needs_explanation: false,
    write: |contents, folder| write_tables(folder, contents.sources),
};

/// Names of all tables, and of their files.
const TABLES: [&str; 4] = ["series", "samples", "worst", "figures"];

/// Writes a file for each table that has rows. Removes the files of empty tables: they would be
/// left from other records.
fn write_tables(folder: &Path, sources: &[NamedRecord]) -> failure::Result<()> {
    let metadata = metadata(sources);
    let file = |name: &str| folder.join(format!("{name}.parquet"));
    let tables = tables(sources);
    for name in TABLES.iter().filter(|name| tables.iter().all(|table| table.name != **name)) {
        let _ = std::fs::remove_file(file(name));
    }
    for table in tables {
        let path = file(table.name);
        let bytes = table.file(&metadata).at(&path)?;
        output::write(&path, &bytes)?;
    }
    Ok(())
}

/// Returns plan, machine and warnings of all records, as key and value for every file.
fn metadata(sources: &[NamedRecord]) -> [(&'static str, String); 2] {
    let record = |source: &NamedRecord| {
        let record = &source.record;
        json!({
            "record": source.name,
            "tool": record.tool,
            "plan": record.plan,
            "machine": record.machine,
            "work": record.work,
            "changes": record.changes,
            "warnings": record.warnings,
        })
    };
    let records = sources.iter().map(record).collect::<Value>().to_string();
    [("latlab.schema", SCHEMA.to_string()), ("latlab.records", records)]
}

/// A table, which becomes a file.
#[derive(Debug)]
struct Table {
    /// Name of the file without its extension.
    name: &'static str,
    columns: Vec<Column>,
}

/// A column of a table, with one value for each row.
#[derive(Debug)]
struct Column {
    name: &'static str,
    values: Values,
}

/// Values of a column; none in rows without one.
#[derive(Debug)]
enum Values {
    Text(Vec<Option<String>>),
    Count(Vec<Option<u64>>),
    /// Numbers above 64 bits, as decimals of 38 digits.
    Large(Vec<Option<u128>>),
    Number(Vec<Option<f64>>),
}

/// The largest number of 38 digits.
const LARGEST: u128 = 10_u128.pow(38) - 1;

impl Table {
    /// Returns the contents of the file. `metadata` is a list of keys and values.
    fn file(&self, metadata: &[(&str, String)]) -> Result<Vec<u8>> {
        let fields = self.columns.iter().map(|column| column.field().map(Arc::new));
        let fields = fields.collect::<Result<Vec<_>>>()?;
        let schema = Arc::new(Type::group_type_builder(self.name).with_fields(fields).build()?);
        let metadata =
            metadata.iter().map(|(key, text)| KeyValue::new((*key).to_owned(), text.clone()));
        let mut properties = WriterProperties::builder()
            .set_created_by(format!("latlab {}", env!("CARGO_PKG_VERSION")))
            .set_dictionary_enabled(false)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_key_value_metadata(Some(metadata.collect()));
        for column in &self.columns {
            let path = ColumnPath::from(column.name);
            properties = properties.set_column_encoding(path, column.values.encoding());
        }
        let mut bytes = Vec::new();
        let mut file = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties.build()))?;
        let mut rows = file.next_row_group()?;
        for column in &self.columns {
            let mut writer = rows.next_column()?.expect("there is one column for each field");
            column.values.put(&mut writer)?;
            writer.close()?;
        }
        rows.close()?;
        file.close()?;
        Ok(bytes)
    }
}

impl Column {
    fn field(&self) -> Result<Type> {
        let of = |physical| {
            Type::primitive_type_builder(self.name, physical).with_repetition(Repetition::OPTIONAL)
        };
        match self.values {
            Values::Text(_) => of(Physical::BYTE_ARRAY)
                .with_logical_type(Some(LogicalType::String))
                .with_converted_type(ConvertedType::UTF8)
                .build(),
            Values::Count(_) => of(Physical::INT64)
                .with_logical_type(Some(LogicalType::integer(64, false)))
                .with_converted_type(ConvertedType::UINT_64)
                .build(),
            Values::Large(_) => of(Physical::FIXED_LEN_BYTE_ARRAY)
                .with_logical_type(Some(LogicalType::decimal(0, 38)))
                .with_converted_type(ConvertedType::DECIMAL)
                .with_length(16)
                .with_precision(38)
                .with_scale(0)
                .build(),
            Values::Number(_) => of(Physical::DOUBLE).build(),
        }
    }
}

impl Values {
    fn encoding(&self) -> Encoding {
        match self {
            Values::Text(_) => Encoding::DELTA_BYTE_ARRAY,
            Values::Count(_) => Encoding::DELTA_BINARY_PACKED,
            Values::Large(_) | Values::Number(_) => Encoding::PLAIN,
        }
    }

    fn put(&self, writer: &mut SerializedColumnWriter<'_>) -> Result<()> {
        match self {
            Values::Text(all) => {
                let values: Vec<ByteArray> =
                    all.iter().flatten().map(|text| text.as_str().into()).collect();
                writer.typed::<ByteArrayType>().write_batch(&values, Some(&levels(all)), None)?;
            }
            Values::Count(all) => {
                // The logical type declares them unsigned.
                let values: Vec<i64> =
                    all.iter().flatten().map(|count| count.cast_signed()).collect();
                writer.typed::<Int64Type>().write_batch(&values, Some(&levels(all)), None)?;
            }
            Values::Large(all) => {
                let large = |value: &u128| value.min(&LARGEST).to_be_bytes().to_vec();
                let values: Vec<FixedLenByteArray> =
                    all.iter().flatten().map(|value| large(value).into()).collect();
                writer.typed::<FixedLenByteArrayType>().write_batch(
                    &values,
                    Some(&levels(all)),
                    None,
                )?;
            }
            Values::Number(all) => {
                let values: Vec<f64> = all.iter().flatten().copied().collect();
                writer.typed::<DoubleType>().write_batch(&values, Some(&levels(all)), None)?;
            }
        }
        Ok(())
    }
}

/// Returns 1 for each row with a value and 0 for the others.
fn levels<T>(values: &[Option<T>]) -> Vec<i16> {
    values.iter().map(|value| i16::from(value.is_some())).collect()
}
