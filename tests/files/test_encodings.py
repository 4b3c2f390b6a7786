"""Old encodings, by the letters that result: right, or one sentence with the option that
makes it right.
"""

import re

import pytest

from fairmaxent.files.encodings import guessed
from fairmaxent.files.formats import read_table
from fairmaxent.files.reading import FileReading

# Names of columns and levels as offices write them, by encoding and language.
TEXTS = {
    "utf-8": {
        "German": "Geschlecht,Größe;männlich,groß;weiblich,für alle",
        "Polish": "Płeć,Wykształcenie;kobieta,średnie;mężczyzna,wyższe",
        "Japanese": "性別,職業;男,会社員;女,学生",
    },
    "utf-16": {
        "French": "Sexe,Prénom;féminin,Hélène;masculin,François",
        "Czech": "Pohlaví,Příjem;muž,nízký;žena,vysoký",
        "Chinese": "性别,收入;男,高;女,低",
    },
    "cp1252": {
        "German": "Geschlecht,Größe;männlich,groß;weiblich,für alle",
        "French": "Sexe,Prénom,Décision;féminin,Hélène,refusé;masculin,François,accepté",
        "Spanish": "Género,Contratación,Año;Hombre,sí,2024;Mujer,no,2025",
        "Danish": "Køn,Løn;kvinde,høj;mand,på orlov",
        "õe alone": "Sexo,Renda;homem,milhões;mulher,tostões",
        "Portuguese": "Gênero,Promoção;homem,não;mulher,sim;outro,opções",
    },
    "cp1250": {
        "Polish": "Płeć,Wykształcenie;kobieta,średnie;mężczyzna,wyższe",
        "Czech": "Pohlaví,Příjem,Přijat;muž,nízký,ano;žena,vysoký,ne",
        "Hungarian": "Nem,Jövedelem,Végzettség;nő,magas,felsőfokú;férfi,alacsony,középfokú",
        "ő and é": "Nem,Megye,Eredmény;nő,Győr,igen;férfi,Fejér,nem",
        "Romanian": "Sex,Oraş;bărbat,Bucureşti;femeie,Iaşi",
    },
    "iso8859-2": {
        "Polish": "Płeć,Wykształcenie;kobieta,średnie;mężczyzna,śląskie",
        "Czech": "Pohlaví,Kraj,Přijat;muž,Středočeský,ano;žena,Plzeňský,ne",
        "Slovak": "Pohlavie,Kraj;žena,Košický;muž,Žilinský",
    },
    "cp1251": {
        "Russian": "Пол,Доход;мужской,высокий;женский,низкий",
        "Ukrainian": "Стать,Дохід;чоловік,високий;жінка,низький",
        "Bulgarian": "Пол,Доход;мъж,висок;жена,нисък",
    },
    "cp1254": {
        "Turkish": "Cinsiyet,İşe alındı;Kadın,Evet;Erkek,Hayır",
        "short": "Cinsiyet,Onay;Kadın,Hayır;Erkek,Evet",
        "cities": "Şehir,Ücret;İstanbul,düşük;Muğla,yüksek",
    },
    "cp932": {
        "Japanese": "性別,職業,採用;男,会社員,はい;女,学生,いいえ",
        "kana": "なまえ,クラス;さくら,エー;ハナ,ビー",
        "kanji": "性別,年収;男性,高;女性,低",
    },
    "gb18030": {
        "Chinese": "性别,职业,录用;男,工程师,是;女,教师,否",
        "short": "性别,收入;男,高;女,低",
        "cities": "城市,学历;北京,本科;上海,硕士;广州,博士",
    },
}


def shown(table):
    """The lines of a table that was read."""
    rows = [table.frame.columns, *table.frame.rows()]
    return [",".join(map(str, row)) for row in rows]


CASES = [(name, language) for name, texts in TEXTS.items() for language in texts]


@pytest.mark.some(10)
@pytest.mark.parametrize(("encoding", "language"), CASES)
def test_the_letters_say_which_encoding_it_is(encoding, language, tmp_path):
    lines = TEXTS[encoding][language].split(";")
    path = tmp_path / "table.csv"
    path.write_bytes("\n".join(lines).encode(encoding))
    table = read_table(path)
    assert shown(table) == lines


# Too little to tell: the first guess may be another one.
UNSURE = [
    ("cp1250", "nem,kor;nő,30;nő,40"),
    ("cp1250", "příjem,n;ř,1"),
    ("cp1250", "ime,n;č,1"),
    ("cp1252", "kyn,n;ý,1"),
    ("cp1252", "navn,n;ø,1"),
    ("cp1254", "il,n;ğ,1"),
    ("cp1251", "а,б;д,1"),
]


@pytest.mark.parametrize(("encoding", "text"), UNSURE)
def test_or_a_note_says_what_to_set(encoding, text, tmp_path):
    lines = text.split(";")
    path = tmp_path / "table.csv"
    path.write_bytes("\n".join(lines).encode(encoding))
    table = read_table(path)
    if shown(table) != lines:
        (note,) = table.notes
        advised = re.search(r"set encoding='(.+?)'", note)[1]
        table = read_table(path, FileReading(encoding=advised))
    assert shown(table) == lines


def test_marks_of_every_language_say_nothing():
    text = "what,price\n“a” – b…,5 €\nc’est,10 °\n"
    assert guessed(text.encode("cp1252")).encoding == "cp1252"


def test_what_no_language_has_is_read_as_before():
    assert guessed(b"\xff\x80\xfe,\xb3\xb9\n").encoding == "cp1252"
    assert guessed(b"\x81\xff\x80\xfe,\xb3\xb9\n").encoding == "latin-1"
